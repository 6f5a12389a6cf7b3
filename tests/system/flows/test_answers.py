"""Endpoints with odd answers: endless, byte by byte, or a closed connection."""

import pytest

from tests.support.product import Flow
from tests.support.receivers import OK, Answer, Behaviour, Close, Drip, Receiver, Stream


@pytest.mark.parametrize("behaviour", [Stream(), Drip()], ids=["stream", "drip"])
def test_an_answer_that_never_ends_does_not_keep_the_lane(
    flow: Flow, receiver: Receiver, behaviour: Behaviour
) -> None:
    # Longer than the test waits for the second message.
    of = flow.subscribe(receiver.endpoint("a"), timeout_seconds=120)
    of.endpoint.next(behaviour)
    published = flow.publish_numbered(2)
    received = of.endpoint.wait_for_last(published[1])
    assert flow.wait_until_settled(of) == ["DELIVERED", "DELIVERED"]
    assert len(received) == 2


def test_an_endless_failure_is_kept_as_an_excerpt(flow: Flow, receiver: Receiver) -> None:
    of = flow.subscribe(receiver.endpoint("a"))
    of.endpoint.next(Stream(status=404))
    (published,) = flow.publish_numbered(1)
    assert flow.wait_until_settled(of) == ["REJECTED"]
    (attempt,) = flow.delivery(of, published)["attempts"]
    assert len(attempt["excerpt"]) == 4096


def test_the_reason_of_a_failure_is_in_the_history(flow: Flow, receiver: Receiver) -> None:
    of = flow.subscribe(receiver.endpoint("a"))
    of.endpoint.next(Answer(422, body=b"no such project: \xff\x00"))
    (published,) = flow.publish_numbered(1)
    assert flow.wait_until_settled(of) == ["REJECTED"]
    (attempt,) = flow.delivery(of, published)["attempts"]
    assert (attempt["outcome"], attempt["status_code"]) == ("CLIENT_ERROR", 422)
    assert attempt["excerpt"].startswith("no such project: ")


def test_a_closed_connection_blocks_like_an_unreachable_endpoint(
    flow: Flow, receiver: Receiver
) -> None:
    of = flow.subscribe(receiver.endpoint("a"))
    of.endpoint.next(Close())
    published = flow.publish_numbered(2)
    received = of.endpoint.wait_for_count(3)
    assert [request.id for request in received] == [published[n] for n in (0, 0, 1)]
    assert [request.redelivery for request in received] == [None] * 3
    outcomes = [attempt["outcome"] for attempt in flow.delivery(of, published[0])["attempts"]]
    assert outcomes == ["UNREACHABLE", "SUCCESS"]


def test_an_endpoint_that_hangs_up_after_each_answer_is_no_failure(
    flow: Flow, receiver: Receiver
) -> None:
    of = flow.subscribe(receiver.endpoint("a"))
    of.endpoint.always(Answer(headers={"Connection": "close"}))
    published = flow.publish_numbered(30)
    received = of.endpoint.wait_for_count(30)
    assert [request.id for request in received] == published
    assert flow.wait_until_settled(of) == ["DELIVERED"] * 30
    of.endpoint.always(OK)
