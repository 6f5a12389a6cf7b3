"""A delivery that a killed sender leaves in doubt under `strict` waits for a person's decision."""

import pytest

from tests.support.product import Flow, Product
from tests.support.receivers import Hold, Receiver
from tests.system.faults.observed import Observed
from tests.system.faults.test_killed_queue_sender import EndpointGroup, group_of
from tests.system.operation.installation import eventually, kill


@pytest.fixture
def flow(product: Product) -> Flow:
    return product.flow("Doubt", kind="QUEUE")


@pytest.fixture
def group(flow: Flow, receiver: Receiver) -> EndpointGroup:
    return group_of(flow, receiver, policy="strict")


def in_doubt(group: EndpointGroup, observed: Observed) -> tuple[str, int]:
    """Kill the sender of a message in flight; return the message, and the delivery in doubt."""
    hold = Hold()
    group.answer(hold)
    message = group.flow.publish()
    (request,) = group.wait_for_count(1)
    kill(observed.queue_sender_of(message))
    eventually(lambda: "IN_DOUBT" in group.statuses(), "it is IN_DOUBT")
    hold.release()
    return message, request.delivery


def test_received_the_siblings_are_redundant(group: EndpointGroup, observed: Observed) -> None:
    _, delivery = in_doubt(group, observed)
    group.flow.rest.post(f"deliveries/{delivery}/mark-delivered")
    assert group.wait_until_settled() == ["DELIVERED", "REDUNDANT"]
    assert len(group.received) == 1


def test_cancelled_another_endpoint_gets_it(group: EndpointGroup, observed: Observed) -> None:
    _, delivery = in_doubt(group, observed)
    group.flow.rest.post(f"deliveries/{delivery}/cancel")
    assert group.wait_until_settled() == ["CANCELLED", "DELIVERED"]
    first, second = group.wait_for_count(2)
    assert (first.path != second.path, second.redelivery) == (True, None)


def test_sent_again_the_same_endpoint_gets_it_first(
    group: EndpointGroup, observed: Observed
) -> None:
    _, delivery = in_doubt(group, observed)
    group.flow.rest.post(f"deliveries/{delivery}/resubmit")
    assert group.wait_until_settled() == ["DELIVERED", "REDUNDANT"]
    first, second = group.wait_for_count(2)
    assert (second.path, second.redelivery, second.attempt) == (first.path, "resubmitted", 2)
