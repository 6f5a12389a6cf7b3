"""Failures of a message go to the subscriber that its publisher named, in the started product."""

import pytest

from tests.support.product import Flow
from tests.support.receivers import Receiver
from tests.system.flows.test_failures import FAILED, GONE, refusing
from tests.system.flows.test_mailbox import Pulled, pull
from tests.system.operation.installation import eventually


def only_failure(of: Pulled, what: str) -> dict[str, object]:
    eventually(lambda: of.status()["available"] >= 1, what)
    messages = of.next(max=10)
    assert len(messages) == 1
    of.say("ack", *messages)
    body: dict[str, object] = messages[0]["body"]
    return body


def test_a_refused_message_goes_to_the_named_recipient_only(flow: Flow, receiver: Receiver) -> None:
    gone = refusing(flow, receiver)
    ops = pull(flow, "ops", event_type=FAILED, header_filter_string=gone.subscriber)
    everybody = pull(flow, "everybody", event_type=FAILED, header_filter_string=gone.subscriber)
    published = flow.publish(b'{"n": 1}', ErrorsTo=ops.name)
    body = only_failure(ops, "ops is notified")
    attempt = body["attempt"]
    assert isinstance(attempt, dict)
    assert (body["message"], body["status"], attempt["status_code"]) == (published, "REJECTED", 410)
    assert (body["publisher"], body["destination"], body["redelivery"]) == (
        flow.event_type,
        None,
        "",
    )
    # The failure that is published to all subscribers comes second, and is the only one they get.
    second = flow.publish(b'{"n": 2}')
    assert only_failure(everybody, "everybody is notified of the second")["message"] == second


@pytest.mark.slow
def test_two_subscribers_that_refuse_to_take_failures_end_no_loop(
    flow: Flow, receiver: Receiver
) -> None:
    gone = refusing(flow, receiver)
    deaf = [
        flow.subscribe(
            receiver.endpoint(name), event_type=FAILED, header_filter_string=gone.subscriber
        )
        for name in ("first", "second")
    ]
    for subscribed in deaf:
        subscribed.endpoint.always(GONE)
    flow.rest.patch(f"publishers/{flow.event_type}", {"errors_to": deaf[0].subscriber})
    flow.publish(b"{}", ErrorsTo=deaf[1].subscriber)
    flow.publish(b"{}")
    eventually(
        lambda: (
            [flow.statuses(subscription) for subscription in deaf] == [["REJECTED"], ["REJECTED"]]
        ),
        "each refused its failure",
    )
    # A later failure is published by the same chore: it would come after those of a loop.
    ops = pull(flow, "notified-last", event_type=FAILED)
    published = flow.publish(b"{}", ErrorsTo=ops.name)
    assert only_failure(ops, "the last is reported")["message"] == published
    assert [flow.statuses(subscription) for subscription in deaf] == [["REJECTED"], ["REJECTED"]]
