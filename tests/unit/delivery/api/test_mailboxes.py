"""Mailboxes by REST: their owners, requests, answers and shapes."""

import base64
from typing import Any

import orjson
import pytest
from pytest_django import DjangoAssertNumQueries

from delivery.models import Status
from subscriptions.models import Scope
from tests.support import factories
from tests.unit.delivery.api.client import Caller, caller, fields_of, refused
from tests.unit.delivery.mailbox.box import FilledMailbox, box, status_of

VERBS = ["ack", "release", "extend", "reject"]


@pytest.fixture
def mailbox(db: None) -> FilledMailbox:
    return box(factories.subscriber("crm"))


def test_a_message_contains_its_fields_and_ack_link(mailbox: FilledMailbox) -> None:
    message = factories.message(
        b'{"n": 1}', event_type=factories.event_type("Order.Made"), headers={"x-priority": "high"}
    )
    mailbox.put(message=message)
    answer = mailbox.ask("next")
    assert answer.content_type == "application/json"
    (fetched,) = answer.body["messages"]
    receipt = fetched["receipt"]
    assert fetched.pop("published_at").endswith("Z")
    assert fetched == {
        "id": message.public_id,
        "event": "Order.Made",
        "headers": {"x-priority": "high"},
        "body": {"n": 1},
        "receipt": receipt,
        "receive_count": 1,
        "replay": None,
        "ack": fetched["ack"],
        "reply": None,
    }
    assert fetched["ack"].endswith(f"/api/v1/mailboxes/crm/ack?receipt={receipt}")


def test_the_ack_link_acknowledges(mailbox: FilledMailbox) -> None:
    (delivery,) = mailbox.put()
    link = mailbox.one()["ack"]
    answer = mailbox.client.post(link[link.index("/api/") :])
    assert (answer.status, answer.body["results"][0]["ok"]) == (200, True)
    assert status_of(delivery) == Status.DELIVERED


@pytest.mark.parametrize(
    "body",
    [
        b'{"a": 1, "a": 2}',
        b'{"number": 123456789012345678901234567890}',
        b'{"price": 1.10, "tiny": 1e-400}',
        b"  [1,\n 2]  ",
        b'"\\u017elu\\u0165"',
        b"null",
    ],
)
def test_json_bodies_are_returned_as_published(mailbox: FilledMailbox, body: bytes) -> None:
    mailbox.put(message=factories.message(body))
    assert b'"body":' + body + b',"receipt"' in mailbox.ask("next").content


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        ("application/json", b'{"broken": '),
        ("application/json", b"NaN"),
        ("application/json", b'"\xff"'),
        ("application/json", b""),
        ("text/plain", b"123"),
        ("", b"{}"),
        ("application/octet-stream", bytes(range(256))),
    ],
)
def test_any_other_body_is_handed_out_byte_by_byte(
    mailbox: FilledMailbox, content_type: str, body: bytes
) -> None:
    mailbox.put(message=factories.message(body, content_type=content_type))
    fetched = mailbox.one()
    assert base64.b64decode(fetched["body_base64"]) == body
    assert "body" not in fetched


def test_json_is_recognised_by_its_suffix(mailbox: FilledMailbox) -> None:
    mailbox.put(
        message=factories.message(b"[1]", content_type="application/vnd.order+json; charset=utf-8")
    )
    assert mailbox.one()["body"] == [1]


@pytest.mark.parametrize("scope", [Scope.MANAGE, Scope.READ, Scope.PUBLISH])
@pytest.mark.parametrize("verb", ["next", *VERBS])
def test_only_a_fetch_key_fetches(mailbox: FilledMailbox, scope: Scope, verb: str) -> None:
    refused(caller(scope).post(f"mailboxes/crm/{verb}"), 403, "wrong-scope")


def test_the_mailbox_of_another_subscriber_is_not_there(mailbox: FilledMailbox) -> None:
    other = caller(Scope.FETCH)
    mailbox.put()
    for name in ("crm", "nobody"):
        for verb in ("next", *VERBS):
            refused(other.post(f"mailboxes/{name}/{verb}"), 404, "no-such-mailbox")
        refused(other.get(f"mailboxes/{name}/status"), 404, "no-such-mailbox")


def test_a_receipt_of_another_mailbox_is_refused_and_changes_nothing(
    mailbox: FilledMailbox,
) -> None:
    other = box()
    (delivery,) = other.put()
    receipt = other.one()["receipt"]
    for verb in VERBS:
        problem = refused(mailbox.ask(verb, [receipt]), 409, "receipt-does-not-count")
        assert "no receipt of a message of this mailbox" in problem["detail"]
    assert status_of(delivery) == Status.IN_FLIGHT


@pytest.mark.parametrize(
    "garbage", ["", "x", "é" * 40, "A" * 40, "_gE" + "A" * 37, "/" * 40, "a" * 9_000]
)
def test_an_invalid_receipt_is_reported_in_its_result(mailbox: FilledMailbox, garbage: str) -> None:
    (delivery,) = mailbox.put()
    receipt = mailbox.one()["receipt"]
    answer = mailbox.ask("ack", [garbage, receipt])
    assert answer.status == 200
    assert [result["ok"] for result in answer.body["results"]] == [False, True]
    assert status_of(delivery) == Status.DELIVERED


def test_many_receipts_get_one_result_each_in_order(mailbox: FilledMailbox) -> None:
    put = mailbox.put(100)
    receipts = [message["receipt"] for message in mailbox.next(100)]
    asked = [receipts[1], "garbage", *receipts[::-1][:97], receipts[1]]
    answer = mailbox.ask("ack", asked)
    assert [result["receipt"] for result in answer.body["results"]] == asked
    assert [result["ok"] for result in answer.body["results"]] == [True, False, *[True] * 98]
    acknowledged = {status_of(delivery) for delivery in put[3:]} | {status_of(put[1])}
    assert acknowledged == {Status.DELIVERED}


@pytest.mark.parametrize(
    ("verb", "query", "field"),
    [
        ("next", {"max": 0}, "max"),
        ("next", {"max": 101}, "max"),
        ("next", {"max": "many"}, "max"),
        ("next", {"wait": 21}, "wait"),
        ("next", {"wait": -1}, "wait"),
        ("next", {"visibility": 43_201}, "visibility"),
        ("next", {"visibility": -1}, "visibility"),
        ("next", {"timeout": 1}, "timeout"),
        ("release", {"delay": 43_201, "receipt": "x"}, "delay"),
        ("extend", {"visibility": -1, "receipt": "x"}, "visibility"),
        ("ack", {"delay": 1, "receipt": "x"}, "delay"),
    ],
)
def test_a_wrong_value_is_refused_and_named(
    mailbox: FilledMailbox, verb: str, query: dict[str, Any], field: str
) -> None:
    (delivery,) = mailbox.put()
    assert fields_of(refused(mailbox.ask(verb, **query), 400)) == {field}
    assert status_of(delivery) == Status.PENDING


@pytest.mark.parametrize(
    "content",
    [
        {},
        {"receipts": []},
        {"receipts": "x"},
        {"receipts": [1]},
        {"receipts": ["x"] * 101},
        {"receipts": ["x" * 10_001]},
        {"x": 1},
    ],
)
def test_a_body_without_receipts_is_refused(mailbox: FilledMailbox, content: Any) -> None:
    answer = mailbox.client.post("mailboxes/crm/ack", content)
    refused(answer, 400)


def test_a_receipt_is_in_the_address_or_the_body_but_not_both(mailbox: FilledMailbox) -> None:
    assert fields_of(refused(mailbox.ask("ack", ["x"], receipt="x"), 400)) == {"receipt"}


def test_a_client_waiting_at_an_empty_mailbox_is_handed_to_the_web_server(
    mailbox: FilledMailbox,
) -> None:
    assert mailbox.ask("next", wait=20).headers["Inturn-Wait"] == str(mailbox.subscriber.pk)
    assert "Inturn-Wait" not in mailbox.ask("next").headers
    mailbox.put()
    assert "Inturn-Wait" not in mailbox.ask("next", wait=20).headers


def test_the_status_counts_available_and_fetched_messages(mailbox: FilledMailbox) -> None:
    assert mailbox.status() == {
        "available": 0,
        "in_flight": 0,
        "oldest_seconds": None,
        "received_per_minute": 0,
        "acknowledged_per_minute": 0,
    }


def test_each_call_needs_the_key_and_one_statement(
    mailbox: FilledMailbox, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    mailbox.put(20)
    mailbox.next()
    with django_assert_num_queries(2):
        messages = mailbox.next(10)
    receipts = [message["receipt"] for message in messages]
    for verb in ("extend", "ack"):
        with django_assert_num_queries(2):
            assert mailbox.ask(verb, receipts).status == 200


def test_no_key_no_mailbox(mailbox: FilledMailbox) -> None:
    refused(Caller(None).post("mailboxes/crm/next"), 401)


def test_the_answer_to_a_fetch_is_valid_json_for_any_body(mailbox: FilledMailbox) -> None:
    mailbox.put(message=factories.message(b'"</script>"', headers={"x-city": "Plzeň"}))
    assert orjson.loads(mailbox.ask("next").content)["messages"][0]["headers"] == {
        "x-city": "Plzeň"
    }
