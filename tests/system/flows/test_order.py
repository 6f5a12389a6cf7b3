"""Order per subscriber, for any way of publishing; endpoints do not delay each other."""

import threading

import pytest

from tests.support.product import Flow
from tests.support.receivers import OK, Answer, Hold, Received, Receiver


def ids(received: list[Received]) -> list[str]:
    return [request.id for request in received]


def test_a_batch_is_delivered_in_the_order_of_its_array(flow: Flow, receiver: Receiver) -> None:
    of = flow.subscribe(receiver.endpoint("a"))
    published = flow.publish_numbered(300)
    assert ids(of.endpoint.wait_for_count(300)) == published


def test_one_publishers_later_message_never_arrives_earlier(flow: Flow, receiver: Receiver) -> None:
    of = flow.subscribe(receiver.endpoint("a"))
    other = flow.product.publisher_of(flow.event_type)
    published: dict[str, list[str]] = {"first": [], "second": []}

    def publish(name: str) -> None:
        publisher = flow.publisher if name == "first" else other
        for _ in range(100):
            published[name].append(publisher.publish(flow.event_type, b"{}")["id"])

    threads = [threading.Thread(target=publish, args=[name]) for name in published]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    received = ids(of.endpoint.wait_for_count(200))
    for name, sequence in published.items():
        assert [id for id in received if id in set(sequence)] == sequence, name
    assert len(set(received)) == len(received)


def test_a_message_answered_before_another_is_sent_arrives_first(
    flow: Flow, receiver: Receiver
) -> None:
    of = flow.subscribe(receiver.endpoint("a"))
    publishers = [flow.publisher, flow.product.publisher_of(flow.event_type)]
    published = [
        publishers[number % 2].publish(flow.event_type, b"{}")["id"] for number in range(60)
    ]
    assert ids(of.endpoint.wait_for_count(60)) == published


def test_order_holds_across_the_subscriptions_of_a_subscriber(
    flow: Flow, receiver: Receiver
) -> None:
    owner = flow.subscriber("owner")
    endpoint = receiver.endpoint("a")
    flow.subscribe(endpoint, subscriber=owner, name="low", filter="$$->'Body'->>'number' < 5")
    flow.subscribe(endpoint, subscriber=owner, name="high", filter="$$->'Body'->>'number' >= 5")
    published = flow.publish_numbered(10)
    assert ids(endpoint.wait_for_count(10)) == published


def test_a_repeated_publish_with_one_idempotency_key_is_one_message(
    flow: Flow, receiver: Receiver
) -> None:
    of = flow.subscribe(receiver.endpoint("a"))
    first, again = (flow.publish(b'{"a": 1}', Idempotency_Key="k") for _ in range(2))
    assert first == again
    last = flow.publish(b'{"a": 2}', Idempotency_Key="another")
    assert ids(of.endpoint.wait_for_last(last)) == [first, last]
    answer = flow.publisher.ask(
        "POST",
        f"events/{flow.event_type}/messages",
        body=b'{"a": 3}',
        headers={"Idempotency-Key": "k"},
    )
    assert answer.status_code == 409


def test_a_hanging_endpoint_delays_no_other_subscriber(flow: Flow, receiver: Receiver) -> None:
    hanging = [
        flow.subscribe(receiver.endpoint(f"hanging-{number}"), timeout_seconds=120)
        for number in range(5)
    ]
    for of in hanging:
        of.endpoint.always(Hold())
    well = flow.subscribe(receiver.endpoint("well"))
    published = flow.publish_numbered(50)
    for of in hanging:
        of.endpoint.wait_for_count(1)
    received = well.endpoint.wait_for_count(50)
    assert ids(received) == published
    assert [len(of.endpoint.received) for of in hanging] == [1] * 5
    for of in hanging:
        flow.rest.patch(f"subscriptions/{of.id}", {"status": "INACTIVE"})


def test_a_sick_endpoint_gets_no_more_than_a_run_before_the_lane_pauses(
    flow: Flow, receiver: Receiver
) -> None:
    owner = flow.subscriber("owner", max_queued_to_send=20, refill_level=10)
    endpoint = receiver.endpoint("a")
    endpoint.always(Answer(500))
    of = flow.subscribe(endpoint, subscriber=owner)
    published = flow.publish_numbered(100)
    assert flow.wait_until_blocked(of)["delivery"] == flow.delivery(of, published[0])["id"]
    first_run = [request for request in endpoint.received if request.attempt == 1][:20]
    assert ids(first_run) == published[:20]
    assert flow.delivery(of, published[20])["attempt_count"] == 0
    endpoint.always(OK)
    assert flow.wait_until_settled(of) == ["DELIVERED"] * 100


def test_old_failures_are_tried_again_however_long_the_backlog_is(
    flow: Flow, receiver: Receiver
) -> None:
    owner = flow.subscriber("owner", max_queued_to_send=20, refill_level=10)
    endpoint = receiver.endpoint("a")
    endpoint.next(Answer(500))
    of = flow.subscribe(endpoint, subscriber=owner)
    published = flow.publish_numbered(200)
    received = ids(endpoint.wait_for_count(201))
    again = received.index(published[0], 1)
    assert again < 100
    assert flow.wait_until_settled(of) == ["DELIVERED"] * 200


@pytest.mark.slow
def test_permanently_failing_messages_do_not_delay_the_next_try_of_others(
    flow: Flow, receiver: Receiver
) -> None:
    # A run of four has room for two old failures: two that fail for ever could fill it.
    owner = flow.subscriber("owner", max_queued_to_send=4, refill_level=1)
    of = flow.subscribe(receiver.endpoint("a"), subscriber=owner)
    of.endpoint.follow(
        lambda request: Answer(500 if request.body == b"[]" or request.tries == 1 else 200)
    )
    for _ in range(3):
        flow.publish(b"[]")
    failed_once = flow.publish()
    of.endpoint.wait_for(lambda _: failed_once in ids(of.endpoint.accepted))
    of.endpoint.always(OK)
    assert flow.wait_until_settled(of) == ["DELIVERED"] * 4


def test_a_poisoned_message_does_not_delay_new_ones(flow: Flow, receiver: Receiver) -> None:
    of = flow.subscribe(receiver.endpoint("a"))
    of.endpoint.follow(lambda request: Answer(500 if request.body == b"[]" else 200))
    poisoned = flow.publish(b"[]")
    of.endpoint.wait_for_count(1)
    fresh = [flow.publish() for _ in range(10)]
    of.endpoint.wait_for(lambda received: sum(request.was_accepted for request in received) == 10)
    assert ids(of.endpoint.accepted) == fresh
    of.endpoint.always(OK)
    of.endpoint.wait_for(lambda received: received[-1].id == poisoned and received[-1].was_accepted)
