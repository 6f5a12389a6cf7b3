"""Publishing by REST: 202 when all is stored, otherwise a problem document and nothing stored."""

import dataclasses
from typing import Any
from unittest.mock import patch

import pytest
from django.conf import settings
from django.db import OperationalError
from pytest_django import DjangoAssertNumQueries

from delivery.incoming import rate_limit
from delivery.incoming.headers import UNREADABLE, sent_headers
from delivery.incoming.problems import Problem
from delivery.models import Delivery, IdempotencyKey, Message
from subscriptions.models import Publisher, Scope
from tests.support import factories
from tests.unit.delivery.api.client import Caller, caller, refused

EVENT = "Order.Created"


@pytest.fixture(autouse=True)
def event_type(db: None) -> Any:
    return factories.event_type(EVENT)


def nothing_stored() -> bool:
    return (
        not Message.objects.exists()
        and not Delivery.objects.exists()
        and not IdempotencyKey.objects.exists()
    )


def test_a_message_and_its_deliveries_are_stored_and_the_body_byte_by_byte(
    publishing: Caller, event_type: Any
) -> None:
    factories.subscription(event_type=event_type)
    factories.subscription(event_type=event_type, filter="$$->'Body'->>'a' = 'no'")
    body = b'{ "b": 1.10,\n"a" : "\xc5\xbelu\xc5\xa5" }'
    answer = publishing.publish(EVENT, body)
    assert answer.status == 202
    message = Message.objects.get()
    assert answer.body == {"id": f"msg_{message.pk}", "deliveries": 1}
    assert bytes(message.body) == body
    assert message.content_type == "application/json"
    assert Delivery.objects.get().status == "PENDING"


def test_headers_are_stored_but_not_hop_by_hop_ones_cookies_and_credentials(
    publishing: Caller,
) -> None:
    answer = publishing.ask(
        "POST",
        f"events/{EVENT}/messages",
        b"{}",
        headers={
            "filter-string": "proj1",
            "x-priority": "high",
            "x-city": "Plzeň".encode().decode("latin-1"),
            "idempotency-key": "k1",
            "cookie": "session=secret",
            "proxy-authorization": "Basic secret",
            "connection": "close",
            "host": "127.0.0.1",
            "te": "trailers",
        },
    )
    assert answer.status == 202, answer
    assert Message.objects.get().headers == {
        "content-type": "application/json",
        "filter-string": "proj1",
        "x-priority": "high",
        "x-city": "Plzeň",
        "idempotency-key": "k1",
    }


def test_the_header_filter_string_has_that_very_name(publishing: Caller, event_type: Any) -> None:
    factories.subscription(event_type=event_type, header_filter_string="proj1")
    answer = publishing.ask(
        "POST", f"events/{EVENT}/messages", b"{}", headers={"FILTER_STRING": "proj1"}
    )
    assert answer.body["deliveries"] == 1


def test_a_body_of_an_event_type_without_json_is_accepted_unchanged(publishing: Caller) -> None:
    factories.event_type("Any.Bytes", content_type="application/octet-stream")
    body = bytes(range(256))
    answer = publishing.ask(
        "POST", "events/Any.Bytes/messages", body, content_type="application/octet-stream"
    )
    assert answer.status == 202
    assert bytes(Message.objects.get().body) == body


def test_a_message_without_subscription_is_stored(publishing: Caller) -> None:
    assert publishing.publish(EVENT).body["deliveries"] == 0
    assert Message.objects.count() == 1


@pytest.mark.parametrize("body", [b"", b"{", b"NaN", b'"\xff"', b"[" * 5000, b"\x00", b"{} {}"])
def test_a_json_body_has_to_be_json(publishing: Caller, body: bytes) -> None:
    refused(publishing.publish(EVENT, body), 400, "not-json")
    assert nothing_stored()


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b'{"a": 1e400}', "the number at line 1, column 7 is beyond 1.8e308"),
        (b'{"a":\n ' + b"9" * 400 + b"}", "the number at line 2, column 2 is beyond 1.8e308"),
        (b"[-1e999]", "the number at line 1, column 2"),
        (b'{"a":"cut \\ud83d"}', "has half of a character"),
        (b'["\\udc00x"]', "has half of a character"),
        (b"[" * 5000, "it is nested deeper"),
    ],
)
def test_json_that_no_filter_can_hold_is_refused_with_the_reason(
    publishing: Caller, body: bytes, words: str
) -> None:
    for answer in (publishing.publish(EVENT, body), publishing.publish(EVENT, body, x_a="y" * 9)):
        refused(answer, 400, "not-json")
        assert answer.body["detail"].startswith("The body is JSON that Inturn cannot use: ")
        assert words in answer.body["detail"]
    assert nothing_stored()


def test_a_body_that_is_not_utf_8_is_refused_with_its_place(publishing: Caller) -> None:
    answer = publishing.publish(EVENT, '{"city": "Zürich"}'.encode("latin-1"))
    assert answer.body["detail"] == "The body is not JSON: byte 11 is not UTF-8."


def test_a_violated_schema_is_422_with_the_path(publishing: Caller) -> None:
    schema = {"type": "object", "properties": {"items": {"items": {"required": ["id"]}}}}
    factories.event_type("Strict", json_schema=schema)
    problem = refused(
        publishing.publish("Strict", b'{"items": [{"id": 1}, {}]}'), 422, "schema-violation"
    )
    assert "1" in problem["path"]
    assert nothing_stored()


def test_a_body_too_deep_for_its_schema_is_refused(publishing: Caller) -> None:
    factories.event_type("Nested", json_schema={"type": "array", "items": {"$ref": "#"}})
    assert publishing.publish("Nested", b"[[[]]]").status == 202
    Message.objects.all().delete()
    refused(publishing.publish("Nested", b"[" * 900 + b"]" * 900), 400)
    assert nothing_stored()


@pytest.mark.parametrize("name", ["Unknown", "Unknown.%C5%99", "a" * 200])
def test_an_unknown_event_type_is_404(publishing: Caller, name: str) -> None:
    refused(publishing.publish(name), 404)
    assert nothing_stored()


def test_an_event_type_not_allowed_to_the_publisher_is_403(event_type: Any) -> None:
    publisher = factories.publisher("some", all_event_types=False)
    some = caller(Scope.PUBLISH, publisher=publisher)
    refused(some.publish(EVENT), 403, "not-allowed")
    assert nothing_stored()
    publisher.event_types.add(event_type)
    assert some.publish(EVENT).status == 202


def test_a_body_over_the_limit_is_413(publishing: Caller) -> None:
    limit = settings.ENVIRONMENT.max_message_bytes
    assert publishing.publish(EVENT, b'"' + b"x" * (limit - 2) + b'"').status == 202
    Message.objects.all().delete()
    refused(publishing.publish(EVENT, b'"' + b"x" * (limit - 1) + b'"'), 413, "too-large")
    assert nothing_stored()


def test_the_same_key_gets_the_first_answer_and_another_body_409(publishing: Caller) -> None:
    first = publishing.publish(EVENT, b'{"a": 1}', idempotency_key="k1")
    again = publishing.publish(EVENT, b'{"a": 1}', idempotency_key="k1")
    assert again.body == first.body
    refused(
        publishing.publish(EVENT, b'{"a": 2}', idempotency_key="k1"), 409, "idempotency-key-reused"
    )
    assert Message.objects.count() == 1


@pytest.mark.parametrize("key", ["", "x" * 256, " a", "é"])
def test_an_idempotency_key_is_short_and_visible(publishing: Caller, key: str) -> None:
    refused(publishing.publish(EVENT, idempotency_key=key), 400)
    assert nothing_stored()


@pytest.mark.parametrize("value", ["a\r\nX: y", "a\0b", "\x1b[31m"])
def test_a_control_character_in_a_header_is_refused(publishing: Caller, value: str) -> None:
    refused(publishing.publish(EVENT, x_a=value), 400)
    assert nothing_stored()


def test_too_many_or_too_long_headers_are_431(publishing: Caller) -> None:
    refused(publishing.publish(EVENT, b"{}", **{f"x_{number}": "1" for number in range(120)}), 431)
    refused(publishing.publish(EVENT, x_a="x" * 40_000), 431)
    assert nothing_stored()


def test_a_header_whose_value_was_dropped_is_refused_and_not_stored_empty() -> None:
    lost = {"HTTP_X_NAME": "", "HTTP_COOKIE": "", UNREADABLE: "cookie,x-name"}
    with pytest.raises(Problem, match="x-name is not ASCII"):
        sent_headers(lost)
    assert sent_headers(lost | {UNREADABLE: "cookie"}) == {"x-name": ""}


def test_an_unknown_destination_is_404(publishing: Caller) -> None:
    problem = refused(publishing.publish(EVENT, destination="crm"), 404, "no-such-destination")
    assert "There is no subscriber 'crm'" in problem["detail"]
    assert nothing_stored()


def test_a_message_to_a_destination_goes_nowhere_else(publishing: Caller, event_type: Any) -> None:
    crm = factories.subscription(event_type=event_type)
    factories.subscription(event_type=event_type)
    answer = publishing.publish(EVENT, destination=crm.subscriber.name)
    assert (answer.status, answer.body["deliveries"]) == (202, 1)
    assert Delivery.objects.get().subscription == crm


def test_a_publisher_that_is_too_fast_waits(
    publishing: Caller, publisher: Publisher, monkeypatch: pytest.MonkeyPatch
) -> None:
    limited = dataclasses.replace(settings.ENVIRONMENT, publish_rate_limit="2/m")
    monkeypatch.setattr(settings, "ENVIRONMENT", limited)
    rate_limit.bucket_of.cache_clear()
    assert [publishing.publish(EVENT).status for _ in range(2)] == [202, 202]
    answer = publishing.publish(EVENT)
    refused(answer, 429, "too-fast")
    assert 1 <= int(answer.headers["Retry-After"]) <= 30
    assert caller(Scope.PUBLISH).publish(EVENT).status == 202
    assert Message.objects.filter(publisher=publisher).count() == 2
    rate_limit.bucket_of.cache_clear()


def test_a_database_that_is_away_is_503_with_retry_after(publishing: Caller) -> None:
    with patch(
        "delivery.api.publish.publish", side_effect=OperationalError("server closed the connection")
    ):
        answer = publishing.publish(EVENT)
    refused(answer, 503, "database-away")
    assert int(answer.headers["Retry-After"]) > 0
    with patch("delivery.incoming.keys.key_by_hash", side_effect=OperationalError("refused")):
        refused(publishing.publish(EVENT), 503, "database-away")


def test_publishing_costs_four_queries(
    publishing: Caller, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    publishing.publish(EVENT)
    # The key with its publisher, the event type, its subscriptions, and the storing statement.
    with django_assert_num_queries(4):
        publishing.publish(EVENT)


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "PATCH"])
def test_messages_accept_only_post(publishing: Caller, method: str) -> None:
    refused(publishing.ask(method, f"events/{EVENT}/messages", b"{}"), 405)


def test_a_query_parameter_is_refused(publishing: Caller) -> None:
    refused(publishing.ask("POST", f"events/{EVENT}/messages?partial=true", b"{}"), 400)
    assert nothing_stored()
