"""SHADOW on the started product: recorded, not sent, by the short way and in batches."""

from tests.support.product import Flow
from tests.support.receivers import Receiver


def test_a_shadow_subscription_receives_later_messages_alone(
    flow: Flow, receiver: Receiver
) -> None:
    of = flow.subscribe(receiver.endpoint("a"))
    other = flow.subscribe(receiver.endpoint("b"))
    flow.rest.patch(f"subscriptions/{of.id}", {"status": "SHADOW"})
    recorded = flow.publish_numbered(3)
    recorded.append(flow.publish(b'{"number": 3}'))
    assert flow.wait_until_settled(other) == ["DELIVERED"] * 4
    assert flow.statuses(of) == ["SHADOW"] * 4
    flow.rest.patch(f"subscriptions/{of.id}", {"status": "ACTIVE"})
    later = flow.publish(b'{"number": 4}')
    (received,) = of.endpoint.wait_for_count(1)
    assert received.id == later
    assert flow.wait_until_settled(of) == ["SHADOW"] * 4 + ["DELIVERED"]
    assert len(other.endpoint.wait_for_count(5)) == 5
