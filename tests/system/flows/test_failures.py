"""Failures in the started product: published, resubmitted, edited, in doubt and decided."""

from typing import Any

import orjson
import pytest

from tests.support.product import Flow, StartedSubscription
from tests.support.receivers import OK, Answer, Receiver
from tests.support.rest import Json
from tests.system.operation.installation import eventually

FAILED = "Inturn.Delivery.Failed"
GONE = Answer(410, body=b"no such project")


def listen(flow: Flow, receiver: Receiver, to: StartedSubscription) -> StartedSubscription:
    """Subscribe to the failures of one subscriber."""
    return flow.subscribe(
        receiver.endpoint("reported"), event_type=FAILED, header_filter_string=to.subscriber
    )


def refusing(flow: Flow, receiver: Receiver, **fields: Any) -> StartedSubscription:
    of = flow.subscribe(receiver.endpoint("hook"), **fields)
    of.endpoint.always(GONE)
    return of


def resubmit(flow: Flow, of: StartedSubscription, message: str, **edited: Any) -> Json:
    return flow.rest.post(f"deliveries/{flow.delivery(of, message)['id']}/resubmit", edited)


def wait_until_done(flow: Flow, job: int) -> Json:
    eventually(
        lambda: flow.rest.get(f"resubmissions/{job}")["state"] == "DONE", "the resubmission is done"
    )
    return flow.rest.get(f"resubmissions/{job}")


def test_a_failure_is_published_to_its_subscribers(flow: Flow, receiver: Receiver) -> None:
    of = refusing(flow, receiver)
    reported = listen(flow, receiver, of)
    message = flow.publish()
    (request,) = reported.endpoint.wait_for_count(1)
    body = orjson.loads(request.body)
    delivery = flow.delivery(of, message)
    assert (body["delivery"], body["message"], body["event"]) == (
        delivery["id"],
        message,
        flow.event_type,
    )
    assert (body["status"], body["attempt"]["status_code"]) == ("REJECTED", 410)
    assert request.headers["inturn-event"] == FAILED


@pytest.mark.slow
def test_a_failure_of_a_failure_message_publishes_nothing(flow: Flow, receiver: Receiver) -> None:
    of = refusing(flow, receiver)
    deaf = listen(flow, receiver, of)
    deaf.endpoint.always(GONE)
    # Would get the failure of the refusing subscriber.
    beyond = flow.subscribe(
        receiver.endpoint("beyond"), event_type=FAILED, header_filter_string=deaf.subscriber
    )
    flow.publish()
    eventually(lambda: flow.statuses(deaf) == ["REJECTED"], "the failure could not be reported")
    # Its notice would be older than that of a second failure, which is published.
    flow.publish()
    eventually(lambda: flow.statuses(deaf) == ["REJECTED"] * 2, "the next was reported, too")
    assert beyond.endpoint.received == []
    assert list(flow.rest.all("deliveries", subscription=beyond.id)) == []


def test_a_resubmitted_delivery_is_marked_and_keeps_its_attempts(
    flow: Flow, receiver: Receiver
) -> None:
    of = refusing(flow, receiver)
    message = flow.publish()
    assert flow.wait_until_settled(of) == ["REJECTED"]
    of.endpoint.always(OK)
    resubmit(flow, of, message)
    first, second = of.endpoint.wait_for_count(2)
    assert (first.redelivery, second.redelivery) == (None, "resubmitted")
    assert (second.id, second.attempt, second.body) == (first.id, 2, first.body)
    assert flow.wait_until_settled(of) == ["DELIVERED"]
    outcomes = [attempt["outcome"] for attempt in flow.delivery(of, message)["attempts"]]
    assert outcomes == ["CLIENT_ERROR", "SUCCESS"]


def test_a_resubmitted_delivery_precedes_waiting_ones(flow: Flow, receiver: Receiver) -> None:
    of = refusing(flow, receiver, policy="strict")
    old = flow.publish()
    assert flow.wait_until_settled(of) == ["REJECTED"]
    of.endpoint.always(Answer(503))
    new = flow.publish()
    flow.wait_until_blocked(of)
    resubmit(flow, of, old)
    # The endpoint is still down: now the old delivery stops the lane.
    of.endpoint.wait_for_last(old)
    of.endpoint.always(OK)
    of.endpoint.wait_for_last(new)
    assert [request.id for request in of.endpoint.accepted] == [old, new]
    assert flow.wait_until_settled(of) == ["DELIVERED", "DELIVERED"]


def test_an_edited_copy_goes_to_the_one_subscription_alone(flow: Flow, receiver: Receiver) -> None:
    of = refusing(flow, receiver)
    other = flow.subscribe(receiver.endpoint("other"))
    message = flow.publish(b'{"id": 1}')
    assert flow.wait_until_settled(of) == ["REJECTED"]
    of.endpoint.always(OK)
    answer = resubmit(flow, of, message, body={"id": 2})
    request = of.endpoint.wait_for_last(answer["id"])[-1]
    assert (request.body, request.redelivery, request.delivery) == (
        b'{"id":2}',
        None,
        answer["delivery"],
    )
    eventually(lambda: flow.statuses(of) == ["REJECTED", "DELIVERED"], "the copy is DELIVERED")
    assert flow.rest.get(f"messages/{answer['id']}")["edited_from"] == message
    assert [request.id for request in other.endpoint.received] == [message]


@pytest.mark.slow
def test_many_are_sent_again_in_order_with_progress(flow: Flow, receiver: Receiver) -> None:
    of = refusing(flow, receiver)
    published = flow.publish_numbered(60)
    assert flow.wait_until_settled(of) == ["REJECTED"] * 60
    of.endpoint.always(OK)
    values = {"filter": {"status": "REJECTED", "subscriber": of.subscriber}}
    assert flow.rest.post("resubmissions", values | {"dry_run": True})["count"] == 60
    job = flow.rest.post("resubmissions", values | {"rate": 30})
    assert (job["state"], job["count"]) == ("RUNNING", 60)
    eventually(
        lambda: flow.rest.get(f"resubmissions/{job['id']}")["done"] >= 30,
        "the first are sent again",
    )
    ended = wait_until_done(flow, job["id"])
    assert (ended["done"], ended["resubmitted"]) == (60, 60)
    of.endpoint.wait_for_count(120)
    assert [request.id for request in of.endpoint.accepted] == published
    assert flow.wait_until_settled(of) == ["DELIVERED"] * 60


@pytest.mark.slow
def test_a_repeated_failure_is_reported_again_and_not_resubmitted_again(
    flow: Flow, receiver: Receiver
) -> None:
    of = refusing(flow, receiver)
    reported = listen(flow, receiver, of)
    flow.publish_numbered(5)
    reported.endpoint.wait_for_count(5)
    job = flow.rest.post("resubmissions", {"filter": {"subscriber": of.subscriber}})
    assert wait_until_done(flow, job["id"])["resubmitted"] == 5
    attempts = [
        orjson.loads(request.body)["attempts"] for request in reported.endpoint.wait_for_count(10)
    ]
    assert attempts == [1] * 5 + [2] * 5
    assert len(of.endpoint.received) == 10


def test_a_queue_message_refused_by_every_endpoint_can_be_resubmitted(
    flow: Flow, receiver: Receiver
) -> None:
    queue = flow.product.flow("QueueAgain", kind="QUEUE")
    group = [
        queue.subscribe(receiver.endpoint(f"{name}-{queue.event_type[-8:]}"), policy="strict")
        for name in "ab"
    ]
    for of in group:
        of.endpoint.always(GONE)
    message = queue.publish()
    eventually(
        lambda: all(queue.statuses(of) == ["REJECTED"] for of in group), "both have refused it"
    )
    for of in group:
        of.endpoint.always(OK)
    resubmit(queue, group[0], message)
    queue.wait_until_settled(group[0])
    assert [queue.statuses(of) for of in group] == [["DELIVERED"], ["REJECTED"]]
    assert (
        queue.rest.ask(
            "POST", f"deliveries/{queue.delivery(group[1], message)['id']}/resubmit"
        ).status_code
        == 409
    )


@pytest.mark.slow
def test_a_delivery_whose_attempts_are_used_up_gets_new_ones_in_its_own_lane(
    flow: Flow, receiver: Receiver
) -> None:
    brief = {"name": f"{flow.event_type}.brief", "copy_of": "workfront-2017", "retry_seconds": 0.1}
    flow.rest.post("policies", brief | {"max_attempts": 2})
    of = refusing(flow, receiver, policy=brief["name"])
    reported = listen(flow, receiver, of)
    message = flow.publish()
    body = orjson.loads(reported.endpoint.wait_for_count(1)[0].body)
    assert (body["status"], body["attempts"], flow.delivery(of, message)["lane"]) == (
        "FAILED",
        2,
        "retry:0",
    )
    of.endpoint.next(GONE)
    of.endpoint.always(OK)
    resubmit(flow, of, message)
    # It fails once more, and is retried as if it were new.
    received = of.endpoint.wait_for_count(4)
    assert [(request.attempt, request.redelivery) for request in received] == [
        (1, None),
        (2, None),
        (3, "resubmitted"),
        (4, "resubmitted"),
    ]
    assert flow.wait_until_settled(of) == ["DELIVERED"]
