"""An event type's content type applies to its messages, whatever the publisher's client sends."""

import base64
from typing import Any

import pytest

from delivery.models import Message, Status
from subscriptions.models import EventType, Kind, Publisher, Scope
from tests.support import factories
from tests.unit.delivery.api.client import ApiAnswer, Caller, caller, refused

pytestmark = pytest.mark.django_db

SCHEMA = {"type": "object", "required": ["id"]}
# The default of curl -d and Python's urllib for any body.
FORM = "application/x-www-form-urlencoded"


@pytest.fixture
def publisher() -> Publisher:
    return factories.publisher()


@pytest.fixture
def publishing(publisher: Publisher) -> Caller:
    return caller(Scope.PUBLISH, publisher=publisher)


def event_type(**fields: Any) -> EventType:
    return factories.event_type(**fields)


def publish(caller: Caller, event_type: EventType, body: bytes, content_type: str) -> ApiAnswer:
    return caller.ask("POST", f"events/{event_type.name}/messages", body, content_type=content_type)


def stored() -> tuple[str, str | None, bytes]:
    message = Message.objects.get()
    return message.content_type, message.headers.get("content-type"), bytes(message.body)


@pytest.mark.parametrize(
    "content_type", ["", FORM, f"{FORM}; charset=utf-8", "application/json", "a/b+json"]
)
@pytest.mark.parametrize("of_type", ["application/json", "application/vnd.order+json"])
def test_a_body_is_checked_against_the_schema_whatever_its_content_type(
    publishing: Caller, content_type: str, of_type: str
) -> None:
    ordered = event_type(json_schema=SCHEMA, content_type=of_type)
    refused(publish(publishing, ordered, b"garbage", content_type), 400, "not-json")
    refused(publish(publishing, ordered, b"{}", content_type), 422, "schema-violation")
    assert publish(publishing, ordered, b'{"id": 1}', content_type).status == 202


@pytest.mark.parametrize("content_type", ["", FORM])
def test_a_body_of_a_json_event_type_is_json_without_a_schema_too(
    publishing: Caller, content_type: str
) -> None:
    refused(publish(publishing, event_type(), b"garbage", content_type), 400, "not-json")


def test_receivers_get_the_bodys_content_type(publishing: Caller) -> None:
    publish(publishing, event_type(content_type="application/vnd.order+json"), b"{}", FORM)
    assert stored() == ("application/vnd.order+json", "application/vnd.order+json", b"{}")


def test_a_schema_alone_makes_it_json(publishing: Caller) -> None:
    ordered = event_type(json_schema=SCHEMA, content_type="text/plain")
    publish(publishing, ordered, b'{"id": 1}', FORM)
    assert stored() == ("application/json", "application/json", b'{"id": 1}')
    refused(publish(publishing, ordered, b"{}", "text/plain"), 422, "schema-violation")


@pytest.mark.parametrize(
    ("encoding", "status"), [("gzip", 415), ("BR", 415), ("identity", 202), ("utf-8", 202)]
)
def test_a_compressed_body_is_refused(publishing: Caller, encoding: str, status: int) -> None:
    path = f"events/{event_type(content_type='text/plain').name}/messages"
    answer = publishing.ask("POST", path, b"{}", headers={"content-encoding": encoding})
    assert answer.status == status
    if status == 415:
        assert "without Content-Encoding" in refused(answer, 415, "unsupported-encoding")["detail"]
        assert not Message.objects.exists()


@pytest.mark.parametrize(
    "content_type", ["text/plain", "application/xml", "application/octet-stream"]
)
def test_another_content_type_is_415_and_names_the_right_one(
    publishing: Caller, content_type: str
) -> None:
    ordered = event_type(name="Order.Placed")
    problem = refused(
        publish(publishing, ordered, b"{}", content_type), 415, "unsupported-media-type"
    )
    assert f"not {content_type}" in problem["detail"]
    assert "Content-Type: application/json" in problem["detail"]
    assert not Message.objects.exists()


@pytest.mark.parametrize(
    "content_type", ["text/plain", FORM, "application/xml", "application/octet-stream"]
)
def test_an_event_type_without_json_accepts_any_content_type(
    publishing: Caller, content_type: str
) -> None:
    free = event_type(content_type="application/octet-stream")
    assert publish(publishing, free, b"garbage", content_type).status == 202
    assert stored() == (content_type, content_type, b"garbage")


def test_items_of_a_batch_alike(publishing: Caller) -> None:
    ordered = event_type(json_schema=SCHEMA)
    good = {"event": ordered.name, "body": {"id": 1}}
    raw = {"event": ordered.name, "body_base64": base64.b64encode(b"garbage").decode()}

    def batch(*items: Any) -> ApiAnswer:
        return publishing.post("messages:batch", list(items))

    wrong = [
        (raw, 400),
        (raw | {"headers": {"Content-Type": FORM}}, 400),
        (raw | {"headers": {"Content-Type": "text/plain"}}, 415),
        (good | {"headers": {"Content-Type": "text/plain"}}, 415),
    ]
    for item, status in wrong:
        assert refused(batch(good, item), status)["index"] == 1
    assert batch(good | {"headers": {"Content-Type": FORM}}).status == 202
    assert stored() == ("application/json", "application/json", b'{"id":1}')


def test_sync_messages_alike(publishing: Caller) -> None:
    ordered = event_type(kind=Kind.SYNC, json_schema=SCHEMA)
    refused(publish(publishing, ordered, b"garbage", FORM), 400, "not-json")
    refused(publish(publishing, ordered, b"{}", FORM), 422, "schema-violation")
    refused(publish(publishing, ordered, b"{}", "text/plain"), 415, "unsupported-media-type")


def test_edited_copies_alike() -> None:
    ordered = event_type(json_schema=SCHEMA)
    subscription = factories.subscription(event_type=ordered)
    message = factories.message(b"garbage", event_type=ordered, content_type=FORM)
    delivery = factories.delivery(Status.REJECTED, subscription=subscription, message=message)
    address = f"deliveries/{delivery.pk}/resubmit"

    def edit(body: bytes, **headers: str) -> ApiAnswer:
        given = {"headers": headers} if headers else {}
        return caller().post(address, {"body_base64": base64.b64encode(body).decode()} | given)

    refused(edit(b"garbage"), 400, "not-json")
    refused(edit(b"{}"), 422, "schema-violation")
    refused(edit(b'{"id": 1}', **{"Content-Type": "text/plain"}), 415, "unsupported-media-type")
    assert edit(b'{"id": 1}').status == 202
    copy = Message.objects.latest("id")
    assert (copy.content_type, copy.headers["content-type"]) == (
        "application/json",
        "application/json",
    )
