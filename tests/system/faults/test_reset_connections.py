"""A firewall resets the product's connections: senders end the old sessions and continue."""

from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from config.embedded.postgres import throwaway
from tests.support.product import Product
from tests.support.receivers import OK, Hold, Receiver
from tests.system.faults.firewall import Firewall
from tests.system.faults.promises import insist, outcomes

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def database() -> Iterator[str]:
    with throwaway() as url:
        yield url


@pytest.fixture(scope="module")
def firewall(database: str) -> Iterator[Firewall]:
    parts = urlsplit(database)
    assert parts.hostname is not None
    assert parts.port is not None
    with Firewall(parts.hostname, parts.port) as firewall:
        yield firewall


@pytest.fixture(scope="module")
def product(
    database: str, firewall: Firewall, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Product]:
    port = urlsplit(database).port
    url = database.replace(f":{port}/", f":{firewall.port}/")
    product = Product(tmp_path_factory.mktemp("behind"), DATABASE_URL=url)
    try:
        product.start()
        yield product
    finally:
        product.kill_all()


def test_lanes_continue_and_no_delivery_in_flight_is_in_doubt(
    product: Product, firewall: Firewall, receiver: Receiver
) -> None:
    flow = product.flow("Reset")
    lanes = [flow.subscribe(receiver.endpoint(f"lane-{number}")) for number in range(5)]
    holds = [Hold() for _ in lanes]
    for of, hold in zip(lanes, holds, strict=True):
        of.endpoint.next(OK, hold)
    published = flow.publish_numbered(10)
    for of in lanes:
        of.endpoint.wait_for_count(2)
    assert firewall.reset_all()
    for hold in holds:
        hold.release()
    for of in lanes:
        of.endpoint.wait_for_count(10)
        insist(flow, of, published, crashes=0)
        assert outcomes(flow, of, published[1]) == ["SUCCESS"]


def test_messages_are_accepted_and_delivered_after_it(
    product: Product, firewall: Firewall, receiver: Receiver
) -> None:
    flow = product.flow("Reset")
    of = flow.subscribe(receiver.endpoint("idle"))
    first = flow.publish()
    of.endpoint.wait_for_count(1)
    flow.wait_until_settled(of)
    assert firewall.reset_all()
    second = flow.publish()
    of.endpoint.wait_for_count(2)
    insist(flow, of, [first, second], crashes=0)
