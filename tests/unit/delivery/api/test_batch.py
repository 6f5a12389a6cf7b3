"""Publishing many at once: in order, all or none, unless partial."""

import base64
from typing import Any

import orjson
import pytest
from django.conf import settings

from delivery.api import batch
from delivery.models import Message
from delivery.publishing.drafts import Draft
from delivery.publishing.publish import publish
from delivery.publishing.stored_messages import Accepted
from subscriptions.models import EventType, Publisher, Scope
from tests.support import factories
from tests.unit.delivery.api.client import Caller, caller, refused

A = {"event": "A", "body": {"n": 1}}
LINES = "application/x-ndjson"


@pytest.fixture(autouse=True)
def event_types(db: None) -> None:
    factories.event_type("A")
    factories.event_type("Strict", json_schema={"type": "object"})


def bodies() -> list[bytes]:
    return [bytes(message.body) for message in Message.objects.order_by("id")]


def test_an_array_is_published_in_its_order(publishing: Caller) -> None:
    answer = publishing.post(
        "messages:batch", [{"event": "A", "body": {"n": number}} for number in range(20)]
    )
    assert answer.status == 202, answer
    assert bodies() == [b'{"n":%d}' % number for number in range(20)]
    assert [result["id"] for result in answer.body["results"]] == [
        f"msg_{message.pk}" for message in Message.objects.order_by("id")
    ]
    assert {result["deliveries"] for result in answer.body["results"]} == {0}


@pytest.mark.parametrize(
    "content_type", ["application/x-ndjson", "application/jsonl; charset=utf-8"]
)
def test_lines_are_published_in_their_order(publishing: Caller, content_type: str) -> None:
    lines = '{"event": "A", "body": 1}\n\n{"event": "A", "body": "\u2028 \x85"}\r\n'.encode()
    answer = publishing.ask("POST", "messages:batch", lines, content_type=content_type)
    assert answer.status == 202, answer
    assert bodies() == [b"1", '"\u2028 \x85"'.encode()]


def test_each_body_is_stored_as_the_bytes_that_were_sent(publishing: Caller) -> None:
    sent = (
        b'[ {"event":"A","body":{ "x" : 1.10,"y":123456789012345678901234567890 , "body": [ ] }} , '
        b'{"body":\n[ 1 ] ,"event":"A"}]'
    )
    assert publishing.ask("POST", "messages:batch", sent).status == 202
    assert bodies() == [
        b'{ "x" : 1.10,"y":123456789012345678901234567890 , "body": [ ] }',
        b"[ 1 ]",
    ]


def test_a_body_can_be_base64(publishing: Caller) -> None:
    factories.event_type("Image", content_type="application/octet-stream")
    body = bytes(range(256))
    item = {
        "event": "Image",
        "headers": {"Content-Type": "image/png", "FILTER_STRING": "p", "Cookie": "x"},
        "body_base64": base64.b64encode(body).decode(),
    }
    assert publishing.post("messages:batch", [item]).status == 202
    message = Message.objects.get()
    assert bytes(message.body) == body
    assert message.headers == {"content-type": "image/png", "filter-string": "p"}


def test_an_empty_batch_publishes_nothing(publishing: Caller) -> None:
    assert publishing.post("messages:batch", []).body == {"results": []}


@pytest.mark.parametrize(
    ("item", "status"),
    [
        ({"event": "None", "body": 1}, 404),
        ({"event": "a\0b", "body": 1}, 400),
        ({"event": "Strict", "body": 1}, 422),
        ({"event": "A"}, 400),
        ({"body": 1}, 400),
        ({"event": 1, "body": 1}, 400),
        ({"event": {}, "body": 1}, 400),
        (A | {"colour": "red"}, 400),
        (A | {"headers": []}, 400),
        (A | {"headers": {"a": 1}}, 400),
        (A | {"headers": {"a b": "c"}}, 400),
        (A | {"headers": {"a": "b\r\nc"}}, 400),
        (A | {"headers": {"Destination": "crm"}}, 404),
        (A | {"idempotency_key": ""}, 400),
        (A | {"idempotency_key": 7}, 400),
        (A | {"idempotency_key": "x" * 300}, 400),
        (A | {"body_base64": "eA=="}, 400),
        ({"event": "A", "body_base64": "?"}, 400),
        ({"event": "A", "body_base64": None}, 400),
        ("text", 400),
        (None, 400),
        ([], 400),
    ],
)
def test_a_bad_item_fails_the_batch_and_is_named_by_its_index(
    publishing: Caller, item: Any, status: int
) -> None:
    problem = refused(publishing.post("messages:batch", [A, item, A]), status)
    assert problem["index"] == 1
    assert bodies() == []
    partial = publishing.post("messages:batch?partial=true", [A, item, A])
    assert partial.status == 202
    first, second, third = partial.body["results"]
    assert second["error"]["status"] == status
    assert int(first["id"].removeprefix("msg_")) < int(third["id"].removeprefix("msg_"))
    assert len(bodies()) == 2


def test_a_repeated_batch_gets_the_first_answers(publishing: Caller) -> None:
    batch = [A | {"idempotency_key": f"k{number}"} for number in range(3)]
    first = publishing.post("messages:batch", batch)
    assert publishing.post("messages:batch", batch).body == first.body
    assert len(bodies()) == 3


def test_a_body_of_an_item_has_the_limit_of_a_message(publishing: Caller) -> None:
    item = {"event": "A", "body": "x" * settings.ENVIRONMENT.max_message_bytes}
    refused(publishing.post("messages:batch", [item]), 413, "too-large")


def test_a_batch_has_an_end(publishing: Caller) -> None:
    refused(publishing.post("messages:batch", [A] * 1001), 413, "too-large")
    lines = b"1\n" * 1001
    refused(publishing.ask("POST", "messages:batch", lines, content_type=LINES), 413, "too-large")


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        (b"{}", "application/json"),
        (b"", "application/json"),
        (b"[", "application/json"),
        (b"[1,]", "application/json"),
        (b"[\xff]", "application/json"),
        (b"{}\n{", "application/x-ndjson"),
        (b"\xff", "application/x-ndjson"),
        (orjson.dumps(A), "text/plain"),
    ],
)
def test_a_batch_that_is_not_one_is_refused(
    publishing: Caller, body: bytes, content_type: str
) -> None:
    refused(publishing.ask("POST", "messages:batch", body, content_type=content_type), 400)
    assert bodies() == []


def test_partial_is_true_or_false(publishing: Caller) -> None:
    refused(publishing.post("messages:batch?partial=maybe", [A]), 400)


@pytest.mark.django_db(transaction=True)
def test_an_event_type_deleted_meanwhile_fails_only_its_item(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def publish_too_late(publisher: Publisher, drafts: list[Draft]) -> list[Accepted]:
        EventType.objects.filter(name="Strict").delete()
        return publish(publisher, drafts)

    publishing = caller(Scope.PUBLISH)
    monkeypatch.setattr(batch, "publish", publish_too_late)
    strict = {"event": "Strict", "body": {}}
    problem = refused(publishing.post("messages:batch", [A, strict]), 404, "deleted-meanwhile")
    assert problem["index"] == 1
    factories.event_type("Strict")
    results = publishing.post("messages:batch?partial=true", [strict, A]).body["results"]
    assert results[0]["error"]["type"] == "urn:inturn:problem:deleted-meanwhile"
    assert results[1]["id"] == f"msg_{Message.objects.get().pk}"


def test_an_item_has_its_own_destination(publishing: Caller) -> None:
    crm = factories.subscriber("crm")
    for subscriber in (crm, factories.subscriber()):
        factories.subscription(event_type=EventType.objects.get(name="A"), subscriber=subscriber)
    lost = A | {"headers": {"Destination": "nobody"}}
    problem = refused(publishing.post("messages:batch", [A, lost]), 404, "no-such-destination")
    assert (problem["index"], bodies()) == (1, [])
    items = [A, lost, A | {"headers": {"Destination": "crm"}}]
    results = publishing.post("messages:batch?partial=true", items).body["results"]
    assert [result.get("deliveries") for result in results] == [2, None, 1]
