"""Replies in the started product: a receiver replies, and the publisher gets it as a message."""

import requests

from tests.support.product import Flow
from tests.support.receivers import Answer, Hold, Receiver
from tests.support.receivers.received import Received
from tests.system.flows.test_mailbox import pull

BODY = b'{"price": 5.00}'


def post(request: Received, body: bytes = BODY) -> requests.Response:
    """Reply as an endpoint does that knows only its request."""
    url = request.headers["inturn-reply"]
    json = {"Content-Type": "application/json"}
    return requests.post(url, data=body, headers=json, timeout=30)


def test_a_reply_reaches_the_subscribers_of_its_event_type_with_what_it_replies_to(
    flow: Flow, receiver: Receiver
) -> None:
    made = flow.product.flow("Made")
    asked = flow.subscribe(receiver.endpoint("asked"))
    wanting = made.subscribe(receiver.endpoint("wanting"))
    mailbox = pull(made, "also")
    published = flow.publish(b'{"n": 1}', ReplyTo=made.event_type)
    (request,) = asked.endpoint.wait_for_count(1)
    first = post(request)
    assert (first.status_code, first.json()["deliveries"]) == (202, 2), first.text
    (got,) = wanting.endpoint.wait_for_count(1)
    assert (got.id, got.body) == (first.json()["id"], BODY)
    said = {
        "inturn-replied-message": published,
        "inturn-replied-delivery": request.headers["inturn-delivery"],
        "inturn-replied-subscriber": asked.subscriber,
    }
    assert {name: got.headers[name] for name in said} == said
    assert "inturn-reply" not in got.headers
    (pulled,) = mailbox.next()
    assert (pulled["headers"]["inturn-replied-message"], pulled["reply"]) == (published, None)
    assert post(request).json() == first.json()
    assert post(request, b"{}").status_code == 409


def test_a_receiver_may_reply_before_it_answers(flow: Flow, receiver: Receiver) -> None:
    """It replies during the attempt, answers 500, and replies again when it is resent."""
    made = flow.product.flow("Made")
    wanting = made.subscribe(receiver.endpoint("wanting"))
    asked = flow.subscribe(receiver.endpoint("asked"))
    hold = Hold(Answer(500))
    asked.endpoint.next(hold)
    published = flow.publish(ReplyTo=made.event_type)
    (request,) = asked.endpoint.wait_for_count(1)
    first = post(request)
    assert flow.delivery(asked, published)["attempts"] == []
    hold.release()
    _, again = asked.endpoint.wait_for_count(2)
    assert first.status_code == 202
    assert post(again).json() == first.json()
    assert len(wanting.endpoint.wait_for_count(1)) == 1
    (shown,) = flow.rest.get(f"messages/{published}")["replies"]
    assert shown["reply"] == first.json()["id"]
