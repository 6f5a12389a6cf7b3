"""One started product for all flows: each test has its own event type and subscribers."""

from collections.abc import Iterator

import pytest

from tests.support.product import Flow, Product


@pytest.fixture(scope="session")
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    product = Product(tmp_path_factory.mktemp("flows"))
    try:
        product.start()
        yield product
        assert product.stop()[0] == 0
    finally:
        product.kill_all()


@pytest.fixture(autouse=True)
def _hold_deliveries_afterwards(request: pytest.FixtureRequest) -> Iterator[None]:
    yield
    if "product" in request.fixturenames:
        request.getfixturevalue("product").hold_waiting()


@pytest.fixture
def flow(product: Product) -> Flow:
    return product.flow("Test")
