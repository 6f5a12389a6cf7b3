"""Dedup in the started product: a duplicate is not sent, unless a person resubmits it."""

from tests.support.product import Flow
from tests.support.receivers import Answer, Receiver
from tests.system.operation.installation import eventually

PATH = "$$->'Body'->'order'->>'id'"
ORDER = b'{"order": {"id": "o-1"}}'
SAME_ORDER = b'{"order": {"id": "o-1"}, "sent": "again"}'
OTHER_ORDER = b'{"order": {"id": "o-2"}}'


def test_a_delivered_message_is_not_sent_again(flow: Flow, receiver: Receiver) -> None:
    of = flow.subscribe(receiver.endpoint("once"), dedup_mode="PATH", dedup_path=PATH)
    first = flow.publish(ORDER)
    assert flow.wait_until_settled(of) == ["DELIVERED"]
    second, third = flow.publish(SAME_ORDER), flow.publish(OTHER_ORDER)
    received = of.endpoint.wait_for_last(third)
    assert [request.id for request in received] == [first, third]
    delivery = flow.delivery(of, second)
    assert (delivery["status"], delivery["attempts"]) == ("DUPLICATE", [])
    assert delivery["reason"].endswith("which was delivered")


def test_another_publishers_message_with_the_same_key_is_a_duplicate(
    flow: Flow, receiver: Receiver
) -> None:
    of = flow.subscribe(receiver.endpoint("keyed"), dedup_mode="KEY")
    flow.rest.post("publishers", {"name": f"{flow.event_type}.other"})
    other = flow.product.publisher_of(f"{flow.event_type}.other")
    flow.publish(ORDER, Idempotency_Key="o-1")
    flow.wait_until_settled(of)
    other.publish(flow.event_type, ORDER, Idempotency_Key="o-1")
    assert flow.wait_until_settled(of) == ["DELIVERED", "DUPLICATE"]
    assert len(of.endpoint.received) == 1


def test_a_duplicate_in_doubt_is_sent_when_a_person_decides_so(
    flow: Flow, receiver: Receiver
) -> None:
    of = flow.subscribe(
        receiver.endpoint("doubt"), dedup_mode="PATH", dedup_path=PATH, policy="strict"
    )
    of.endpoint.always(Answer(503))
    flow.publish(ORDER)
    flow.wait_until_blocked(of)
    second = flow.publish(SAME_ORDER)
    doubted = flow.delivery(of, second)
    assert doubted["status"] == "IN_DOUBT"
    of.endpoint.always(Answer(200))
    flow.rest.post(f"deliveries/{doubted['id']}/resubmit")
    eventually(lambda: flow.statuses(of) == ["DELIVERED"] * 2, "both are DELIVERED")
    last = of.endpoint.received[-1]
    assert (last.id, last.redelivery) == (second, "resubmitted")


def test_after_one_that_was_rejected_the_next_is_sent(flow: Flow, receiver: Receiver) -> None:
    of = flow.subscribe(receiver.endpoint("again"), dedup_mode="PATH", dedup_path=PATH)
    of.endpoint.next(Answer(404))
    flow.publish(ORDER)
    assert flow.wait_until_settled(of) == ["REJECTED"]
    flow.publish(SAME_ORDER)
    assert flow.wait_until_settled(of) == ["REJECTED", "DELIVERED"]
