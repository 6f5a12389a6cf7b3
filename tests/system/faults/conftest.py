"""One started product for all faults: the next test finds killed processes back."""

from collections.abc import Iterator

import pytest

from tests.support.product import Flow, Product
from tests.system.faults.observed import Observed
from tests.system.operation.installation import eventually


@pytest.fixture(scope="session")
def surviving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    product = Product(tmp_path_factory.mktemp("faults"))
    try:
        product.start()
        yield product
    finally:
        product.kill_all()


@pytest.fixture
def product(surviving: Product) -> Product:
    """The product with both its senders running, and nothing to send from earlier tests."""
    if not surviving.is_running():
        surviving.start()
    observed = Observed(surviving)
    eventually(lambda: observed.is_well(senders=2), "all that was killed is back")
    surviving.hold_waiting()
    return surviving


@pytest.fixture
def flow(product: Product) -> Flow:
    return product.flow("Fault")


@pytest.fixture
def observed(product: Product) -> Observed:
    return Observed(product)
