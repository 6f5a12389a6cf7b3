"""The request at the endpoint: bytes, headers, method, credentials."""

import base64
import datetime

import pytest
from standardwebhooks.webhooks import Webhook

from tests.support.product import Flow
from tests.support.receivers import Receiver
from tests.system.operation.installation import eventually

BODY = b'{"b": 1,  "a": [1, 2, "\\u00fc"]}\n'


def test_the_stored_bytes_are_sent_with_their_content_type(flow: Flow, receiver: Receiver) -> None:
    of = flow.subscribe(receiver.endpoint("a"))
    flow.publish(BODY, Content_Type="application/json; charset=utf-8")
    (request,) = of.endpoint.wait_for_count(1)
    assert request.body == BODY
    assert request.headers["content-type"] == "application/json; charset=utf-8"
    assert request.method == "POST"


def test_a_request_has_the_documented_headers(flow: Flow, receiver: Receiver) -> None:
    of = flow.subscribe(receiver.endpoint("a"))
    id = flow.publish(BODY)
    (request,) = of.endpoint.wait_for_count(1)
    sent_at = datetime.datetime.fromtimestamp(
        int(request.headers["webhook-timestamp"]), datetime.UTC
    )
    assert abs((datetime.datetime.now(datetime.UTC) - sent_at).total_seconds()) < 60
    assert request.id == id
    assert request.headers["inturn-event"] == flow.event_type
    assert request.attempt == 1
    assert request.redelivery is None
    assert request.delivery == flow.delivery(of, id)["id"]


def test_a_method_in_front_of_the_endpoint_is_used(flow: Flow, receiver: Receiver) -> None:
    endpoint = receiver.endpoint("a")
    flow.subscribe(endpoint, endpoint=f"PATCH:{endpoint.url}?key=1")
    flow.publish(BODY)
    (request,) = endpoint.wait_for_count(1)
    assert (request.method, request.path, request.body) == ("PATCH", "/a?key=1", BODY)


@pytest.mark.parametrize(
    ("auth", "expected"),
    [
        ({"type": "none"}, None),
        (
            {"type": "basic", "username": "Aladdin", "password": "open:sesame"},
            "Basic " + base64.b64encode(b"Aladdin:open:sesame").decode(),
        ),
        ({"type": "bearer", "token": "t0ken"}, "Bearer t0ken"),
    ],
    ids=lambda each: each["type"] if isinstance(each, dict) else "",
)
def test_credentials_are_sent(
    flow: Flow, receiver: Receiver, auth: dict[str, str], expected: str | None
) -> None:
    of = flow.subscribe(receiver.endpoint("a"), auth=auth, headers={"X-Team": "blue"})
    flow.publish(BODY)
    (request,) = of.endpoint.wait_for_count(1)
    assert request.headers.get("Authorization") == expected
    assert request.headers["X-Team"] == "blue"


def test_a_rotated_secret_overlaps_with_the_old_one(flow: Flow, receiver: Receiver) -> None:
    of = flow.subscribe(receiver.endpoint("a"))
    new = flow.rest.post(f"subscriptions/{of.id}/secrets", {"overlap_seconds": 3600})["secret"]
    flow.publish(BODY)
    (request,) = of.endpoint.wait_for_count(1)
    assert len(request.headers["webhook-signature"].split()) == 2
    for secret in (of.secret, new):
        Webhook(secret).verify(request.body, dict(request.headers))


def test_a_rotation_without_overlap_ends_the_old_secret(flow: Flow, receiver: Receiver) -> None:
    of = flow.subscribe(receiver.endpoint("a"))
    flow.publish(BODY)
    of.endpoint.wait_for_count(1)
    new = flow.rest.post(f"subscriptions/{of.id}/secrets", {"overlap_seconds": 0})["secret"]

    def is_signed_anew() -> bool:
        request = of.endpoint.received[-1]
        (signature,) = request.headers["webhook-signature"].split()
        timestamp = datetime.datetime.fromtimestamp(
            int(request.headers["webhook-timestamp"]), datetime.UTC
        )
        return Webhook(new).sign(request.id, timestamp, request.body.decode()) == signature

    # A sender reads changes within two seconds, not at once.
    def publish_one_more() -> bool:
        count = len(of.endpoint.received)
        flow.publish(BODY)
        of.endpoint.wait_for_count(count + 1)
        return is_signed_anew()

    eventually(publish_one_more, "requests are signed with the new secret alone")
