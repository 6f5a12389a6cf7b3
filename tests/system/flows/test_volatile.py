"""VOLATILE messages in the started product: tried once, without delaying others."""

import secrets

import pytest

from tests.support.product import Flow, Product
from tests.support.receivers import Answer, Close, Receiver
from tests.system.flows.test_concurrent import subscribe
from tests.system.operation.installation import eventually


@pytest.fixture
def flow(product: Product) -> Flow:
    return product.flow("Volatile", durability="VOLATILE")


@pytest.mark.parametrize("processing", ["SERIAL", "CONCURRENT"])
def test_a_volatile_message_is_delivered(flow: Flow, receiver: Receiver, processing: str) -> None:
    of = subscribe(flow, receiver, processing=processing)
    flow.publish_numbered(20)
    assert flow.wait_until_settled(of) == ["DELIVERED"] * 20


@pytest.mark.parametrize(
    "policy",
    [
        "teamforge",
        *(
            pytest.param(name, marks=pytest.mark.slow)
            for name in ("strict", "workfront-2017", "webmethods")
        ),
    ],
)
@pytest.mark.parametrize(
    "processing", ["SERIAL", pytest.param("CONCURRENT", marks=pytest.mark.slow)]
)
def test_a_failed_volatile_delivery_is_settled_and_the_next_is_sent(
    flow: Flow, receiver: Receiver, policy: str, processing: str
) -> None:
    of = subscribe(flow, receiver, policy=policy, processing=processing, max_in_flight=1)
    of.endpoint.next(Answer(500), Close())
    flow.publish_numbered(3)
    assert flow.wait_until_settled(of) == ["FAILED", "FAILED", "DELIVERED"]
    assert [request.attempt for request in of.endpoint.received] == [1, 1, 1]
    eventually(lambda: flow.lane(of)["state"] != "BLOCKED", "nothing stops it")


@pytest.mark.parametrize(
    "processing", ["SERIAL", pytest.param("CONCURRENT", marks=pytest.mark.slow)]
)
def test_a_failed_volatile_delivery_blocks_nothing_even_as_the_last(
    flow: Flow, receiver: Receiver, processing: str
) -> None:
    of = subscribe(flow, receiver, processing=processing)
    of.endpoint.next(Close())
    flow.publish()
    assert flow.wait_until_settled(of) == ["FAILED"]
    eventually(lambda: flow.lane(of)["state"] != "BLOCKED", "nothing stops it")


def test_a_volatile_queue_message_goes_to_the_next_endpoint(
    product: Product, receiver: Receiver
) -> None:
    flow = product.flow("VolatileQueue", kind="QUEUE", durability="VOLATILE")
    group = [flow.subscribe(receiver.endpoint(f"{name}-{secrets.token_hex(4)}")) for name in "ab"]
    group[0].endpoint.always(Answer(500))
    flow.publish_numbered(10)
    statuses = [flow.wait_until_settled(of) for of in group]
    assert statuses[1] == ["DELIVERED"] * 10
    assert set(statuses[0]) <= {"FAILED", "REDUNDANT"}
    assert statuses[0].count("FAILED") == len(group[0].endpoint.received)
