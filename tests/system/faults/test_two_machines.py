"""Two machines on one database, with equal names and perhaps equal homes.

Each lane is served by one of them, and by the other one if that dies.
"""

from collections.abc import Iterator

import pytest

from config.embedded.postgres import running_url
from tests.support.product import Flow, Product
from tests.support.receivers import OK, Receiver, Slow
from tests.system.faults import twin
from tests.system.faults.observed import Observed
from tests.system.faults.promises import insist
from tests.system.operation.installation import eventually, kill

pytestmark = pytest.mark.slow


@pytest.fixture(
    params=[
        "another home",
        pytest.param(
            "the same home",
            marks=pytest.mark.skipif(bool(twin.missing()), reason=twin.missing()),
        ),
    ]
)
def other(
    request: pytest.FixtureRequest,
    product: Product,
    observed: Observed,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Product]:
    """A second machine, which shares the first one's database, keys and name."""
    url = running_url(product.home)
    assert url is not None
    shared = {
        "DATABASE_URL": url,
        "INTURN_SECRET_KEY": (product.home / "secret-key").read_text(),
        "INTURN_ENCRYPTION_KEYS": (product.home / "encryption-keys").read_text(),
    }
    folder = tmp_path_factory.mktemp("other")
    is_twin = request.param == "the same home"
    other = twin.Twin(product, folder, **shared) if is_twin else Product(folder, **shared)
    try:
        other.start()
        assert list(folder.iterdir()), "its files are its own"
        eventually(lambda: len(observed.senders()) == 4, "the senders of both are at work")
        yield other
    finally:
        other.kill_all()


def test_another_machine_takes_over_the_work_of_a_dead_one(
    flow: Flow, receiver: Receiver, product: Product, other: Product, observed: Observed
) -> None:
    lanes = [flow.subscribe(receiver.endpoint(f"lane-{number}")) for number in range(8)]
    for of in lanes:
        of.endpoint.always(Slow(0.005))
    published = flow.publish_numbered(300)
    for of in lanes:
        of.endpoint.wait_for_count(20)
    # One sender serves all lanes while it is not busy.
    serving = {observed.sender_of(of) for of in lanes}
    assert len(serving) == 1
    if serving & product.whole("cluster"):
        kill(*product.whole("cluster"))
    else:
        other.kill_all()
    for of in lanes:
        of.endpoint.wait_for_count(len(published))
        of.endpoint.always(OK)
        insist(flow, of, published)
