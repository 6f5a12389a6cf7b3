"""The retry lane in the started product.

A failed delivery leaves the fresh ones' lane, and is sent again when it is due.
"""

import secrets
from collections.abc import Mapping
from datetime import datetime

import pytest

from tests.support.product import Flow, Product, StartedSubscription
from tests.support.receivers import OK, Answer, Close, Hold, Receiver
from tests.system.operation.installation import eventually

SOON = {"retry_seconds": 0.3, "max_attempts": 3}


def policy_like(product: Product, original: str, **fields: object) -> str:
    name = f"{original}-{secrets.token_hex(4)}"
    product.rest.post("policies", {"name": name, "copy_of": original, **fields})
    return name


def subscribe(
    flow: Flow, receiver: Receiver, policy: Mapping[str, object], *, like: str = "workfront-2017"
) -> StartedSubscription:
    name = policy_like(flow.product, like, **policy)
    return flow.subscribe(receiver.endpoint(f"hook-{secrets.token_hex(4)}"), policy=name)


def due_in_seconds(flow: Flow, of: StartedSubscription, message: str) -> float:
    delivery = flow.delivery(of, message)
    started_at = datetime.fromisoformat(delivery["attempts"][0]["started_at"])
    return (datetime.fromisoformat(delivery["next_attempt_at"]) - started_at).total_seconds()


def test_new_messages_flow_while_a_failed_one_waits_for_its_retry(
    flow: Flow, receiver: Receiver
) -> None:
    of = flow.subscribe(receiver.endpoint("hook"), policy="workfront-2017")
    of.endpoint.next(Answer(503))
    first, second, third = (flow.publish() for _ in range(3))
    received = of.endpoint.wait_for_count(3)
    assert [request.id for request in received] == [first, second, third]
    eventually(
        lambda: flow.statuses(of) == ["PENDING", "DELIVERED", "DELIVERED"],
        "the others are delivered",
    )
    delivery = flow.delivery(of, first)
    assert delivery["lane"] == "retry:0"
    assert (delivery["attempt_count"], delivery["reason"][:3]) == (1, "503")
    assert due_in_seconds(flow, of, first) == pytest.approx(600, abs=5)
    assert flow.lane(of)["state"] != "BLOCKED"


def test_the_first_retry_of_workfront_48h_is_due_after_84_8_seconds(
    flow: Flow, receiver: Receiver
) -> None:
    of = flow.subscribe(receiver.endpoint("hook"), policy="workfront-48h")
    of.endpoint.always(Close())
    message = flow.publish()
    eventually(lambda: flow.delivery(of, message)["attempt_count"] == 1, "it was tried")
    assert due_in_seconds(flow, of, message) == pytest.approx(84.8, abs=5)


def test_a_retry_that_succeeds_is_delivered_with_its_attempts_in_history(
    flow: Flow, receiver: Receiver
) -> None:
    of = subscribe(flow, receiver, SOON)
    of.endpoint.next(Answer(500), Close())
    message = flow.publish()
    of.endpoint.wait_for_count(3)
    assert flow.wait_until_settled(of) == ["DELIVERED"]
    history = flow.delivery(of, message)["attempts"]
    assert [attempt["outcome"] for attempt in history] == ["SERVER_ERROR", "UNREACHABLE", "SUCCESS"]
    assert [request.headers["inturn-attempt"] for request in of.endpoint.received] == [
        "1",
        "2",
        "3",
    ]


def test_retries_are_sent_no_earlier_than_due(flow: Flow, receiver: Receiver) -> None:
    of = subscribe(flow, receiver, {"retry_seconds": 1, "max_attempts": 3})
    of.endpoint.always(Answer(500))
    flow.publish()
    first, second, third = of.endpoint.wait_for_count(3)
    assert second.at - first.at >= 0.9
    assert third.at - second.at >= 0.9


def test_when_the_attempts_are_used_up_the_delivery_is_failed(
    flow: Flow, receiver: Receiver
) -> None:
    of = subscribe(flow, receiver, SOON)
    of.endpoint.always(Answer(410))
    message = flow.publish()
    assert flow.wait_until_settled(of) == ["FAILED"]
    delivery = flow.delivery(of, message)
    assert delivery["attempt_count"] == len(of.endpoint.received) == 3
    assert delivery["next_attempt_at"] is None


@pytest.mark.slow
def test_a_queue_message_failed_by_every_endpoint_waits_for_its_schedule(
    product: Product, receiver: Receiver
) -> None:
    flow = product.flow("Queue", kind="QUEUE")
    of = subscribe(flow, receiver, SOON)
    of.endpoint.always(Answer(500))
    flow.publish()
    assert flow.wait_until_settled(of) == ["FAILED"]
    assert len(of.endpoint.received) == 3


@pytest.mark.slow
def test_an_endpoint_with_many_retries_does_not_delay_the_retries_of_another(
    flow: Flow, receiver: Receiver
) -> None:
    many = subscribe(flow, receiver, {"retry_seconds": 0.1, "max_attempts": 100_000})
    other = subscribe(flow, receiver, SOON)
    hold = Hold()
    many.endpoint.follow(lambda request: Answer(500) if request.tries == 1 else hold)
    other.endpoint.follow(lambda request: Answer(500) if request.tries == 1 else OK)
    # More than a sender reads at a time.
    flow.publish_numbered(1000)
    many.endpoint.wait_for_count(1001, seconds=60)
    flow.publish_numbered(20)
    eventually(
        lambda: (
            flow.rest.get("deliveries", subscription=other.id, status="PENDING", limit=1)["results"]
            == []
        ),
        "the other's retries came",
    )
    assert len(many.endpoint.received) <= 1022
    hold.release()


@pytest.mark.slow
def test_an_inactive_subscription_holds_its_retries_too(flow: Flow, receiver: Receiver) -> None:
    of = subscribe(flow, receiver, {"retry_seconds": 1.5, "max_attempts": 100})
    of.endpoint.always(Answer(500))
    flow.publish()
    of.endpoint.wait_for_count(1)
    flow.rest.patch(f"subscriptions/{of.id}", {"status": "INACTIVE"})
    other = subscribe(flow, receiver, {"retry_seconds": 1, "max_attempts": 4})
    other.endpoint.always(Answer(500))
    flow.publish()
    # Its three retries take longer than the one in flight.
    assert flow.wait_until_settled(other) == ["FAILED"]
    assert len(of.endpoint.received) == 1
    of.endpoint.always(OK)
    flow.rest.patch(f"subscriptions/{of.id}", {"status": "ACTIVE", "backlog": "deliver"})
    assert flow.wait_until_settled(of) == ["DELIVERED"]


def test_an_answer_that_is_no_success_code_of_the_policy_is_tried_again(
    flow: Flow, receiver: Receiver
) -> None:
    of = subscribe(flow, receiver, SOON | {"success_codes": "200,201"})
    of.endpoint.next(Answer(204), Answer(202, body=b"queued"), Answer(201))
    message = flow.publish()
    assert flow.wait_until_settled(of) == ["DELIVERED"]
    first, second, third = flow.delivery(of, message)["attempts"]
    assert [attempt["outcome"] for attempt in (first, second, third)] == [
        "SERVER_ERROR",
        "SERVER_ERROR",
        "SUCCESS",
    ]
    assert [attempt["status_code"] for attempt in (first, second, third)] == [204, 202, 201]
    assert first["error"] == "the policy counts only 200, 201 as success"
    assert second["excerpt"] == "queued"
