"""Messages are found, read and explained, by callers with the right."""

from datetime import UTC, datetime, timedelta

import pytest
from pytest_django import DjangoAssertNumQueries

from delivery.api import message_query, messages
from delivery.states import Status
from delivery.support import search
from subscriptions.models import Publisher, Scope, SubscriptionStatus
from tests.support import factories
from tests.unit.delivery.api.client import Caller, caller, fields_of, refused

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)


def found(manager: Caller, query: str) -> list[str]:
    answer = manager.get(f"messages?{query}")
    assert answer.status == 200, answer
    return [message["id"] for message in answer.body["results"]]


def test_messages_are_filtered_by_every_parameter(manager: Caller) -> None:
    old = factories.message(
        b'{"city": "Plze\xc5\x88", "n": 1}',
        event_type=factories.event_type("A"),
        publisher=factories.publisher("shop"),
        headers={"filter-string": "proj1", "x-priority": "HIGH"},
        published_at=NOON,
    )
    new = factories.message(
        b"\xff\x00", content_type="image/png", published_at=NOON + timedelta(hours=1)
    )
    factories.delivery(Status.DELIVERED, message=old)
    for query in [
        "event_type=A",
        "publisher=shop",
        "status=DELIVERED",
        f"id_to=msg_{old.pk}",
        f"id_to={old.pk}",
        "until=2026-05-04T12:30:00Z",
        "until=2026-05-04T14:30:00%2B02:00",
        "until=2026-05-04T14:30:00+02:00",
        "header=proj1",
        "header=X-Priority:%20high",
        "body=Plze%C5%88",
        "body=%22n%22:%201",
        f"header=proj1&body=city&event_type=A&publisher=shop&status=DELIVERED&id_from={old.pk}",
    ]:
        assert found(manager, query) == [old.public_id], query
    for query in [f"id_from=msg_{new.pk}", "since=2026-05-04T12:30:00Z", "header=image/png"]:
        assert found(manager, query) == [new.public_id], query
    for query in [
        "status=REJECTED",
        "header=proj2",
        "body=plze%C5%88",
        "publisher=none",
        "event_type=A&publisher=x",
    ]:
        assert found(manager, query) == [], query
    assert found(manager, "") == [new.public_id, old.public_id]


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("status=LOST", "status"),
        ("since=yesterday", "since"),
        ("until=2026-13-01", "until"),
        ("id_from=x", "id_from"),
        ("id_to=msg_", "id_to"),
        ("id_to=99999999999999999999", "id_to"),
        ("header=%00", "header"),
        ("body=" + "x" * 600, "body"),
        ("publisher=" + "x" * 300, "publisher"),
        ("after=x", "after"),
        ("size=1", "size"),
    ],
)
def test_a_wrong_search_is_refused(manager: Caller, query: str, field: str) -> None:
    assert fields_of(refused(manager.get(f"messages?{query}"), 400)) == {field}


def test_a_search_that_takes_too_long_is_aborted(
    manager: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    factories.message()
    monkeypatch.setattr(message_query, "TEXT_SEARCH_SECONDS", 0.05)
    monkeypatch.setattr(search, "_BODY_HOLDS", "pg_sleep(30) IS NOT NULL AND %s <> ''::bytea")
    problem = refused(manager.get("messages?body=x"), 400, "search-too-wide")
    assert "since" in problem["detail"]
    assert len(manager.get("messages").body["results"]) == 1


def test_pages_of_messages_go_from_new_to_old_at_a_fixed_cost(
    manager: Caller, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    messages = [factories.message() for _ in range(5)]
    for message in messages:
        factories.delivery(Status.DELIVERED, message=message)
        factories.delivery(message=message)
    manager.get("messages")
    # The key, the messages, the counts of their deliveries.
    with django_assert_num_queries(3):
        page = manager.get("messages?limit=3").body
    assert [row["id"] for row in page["results"]] == [
        message.public_id for message in messages[:1:-1]
    ]
    assert page["results"][0]["deliveries"] == {"DELIVERED": 1, "PENDING": 1}
    assert [row["id"] for row in manager.get(page["next"]).body["results"]] == [
        message.public_id for message in messages[1::-1]
    ]


def test_a_message_is_read_with_its_deliveries_and_attempts(
    manager: Caller, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    message = factories.message(b'{ "a":  1.10 }')
    for _ in range(3):
        factories.delivery(Status.REJECTED, message=message)
    manager.get("messages")
    # The key, the message, its deliveries, their attempts, its callbacks.
    with django_assert_num_queries(5):
        answer = manager.get(f"messages/{message.public_id}")
    assert b'"body":{ "a":  1.10 }' in answer.content
    assert "body_base64" not in answer.body
    assert answer.body["size"] == 14
    delivery = answer.body["deliveries"][0]
    assert delivery["status"] == "REJECTED"
    assert delivery["message"] == message.public_id
    (attempt,) = delivery["attempts"]
    assert (attempt["number"], attempt["outcome"], attempt["status_code"]) == (
        1,
        "CLIENT_ERROR",
        404,
    )


def test_a_message_with_many_deliveries_and_attempts_is_read_in_part(
    manager: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(messages, "SHOWN_DELIVERIES", 2)
    message = factories.message()
    first, second, _ = [
        factories.delivery(message=message, attempts=attempts) for attempts in (15, 0, 0)
    ]
    for number in range(1, 16):
        factories.attempt(first, number=number)
    body = manager.get(f"messages/{message.public_id}").body
    assert body["delivery_count"] == 3
    assert [delivery["id"] for delivery in body["deliveries"]] == [first.pk, second.pk]
    shown = body["deliveries"][0]
    assert shown["attempt_count"] == 15
    assert [attempt["number"] for attempt in shown["attempts"]] == list(range(6, 16))


@pytest.mark.parametrize("body", [b"\x00\xff", b"", b"1e999", b"[" * 2000, b'"\\ud800"'])
def test_a_body_that_is_not_json_is_returned_as_base64(manager: Caller, body: bytes) -> None:
    message = factories.message(body, content_type="application/octet-stream")
    answer = manager.get(f"messages/{message.pk}")
    assert answer.status == 200
    assert "body" not in answer.body
    assert "body_base64" in answer.body


def test_a_publisher_reads_its_own_messages_and_no_others(
    publishing: Caller, publisher: Publisher
) -> None:
    own = factories.message(publisher=publisher)
    other = factories.message()
    assert publishing.get(f"messages/{own.public_id}").status == 200
    refused(publishing.get(f"messages/{other.public_id}"), 404)
    refused(caller(Scope.PUBLISH).get(f"messages/{own.public_id}"), 404)
    assert publishing.get(f"messages/{own.public_id}/explain").status == 200
    refused(publishing.get(f"messages/{other.public_id}/explain"), 404)
    listed = publishing.get("messages").body["results"]
    assert [row["id"] for row in listed] == [own.public_id]


def test_explain_lists_every_subscription_with_the_reason(manager: Caller) -> None:
    event_type = factories.event_type("A")
    factories.subscription("all", event_type=event_type)
    factories.subscription("filtered", event_type=event_type, filter="$$->'Body'->>'a' = 'b'")
    factories.subscription("header", event_type=event_type, header_filter_string="proj1")
    factories.subscription("off", event_type=event_type, status=SubscriptionStatus.INACTIVE)
    factories.subscription("elsewhere")
    message = factories.message(b'{"a": "c"}', event_type=event_type)
    answer = manager.get(f"messages/{message.public_id}/explain")
    reported = {
        row["subscription"]: (row["qualifies"], row["reason"]) for row in answer.body["results"]
    }
    assert reported["all"][0] is True
    assert {name for name, (qualifies, _) in reported.items() if not qualifies} == {
        "filtered",
        "header",
        "off",
    }
    assert "filter" in reported["filtered"][1]
    assert "FILTER_STRING" in reported["header"][1]
    assert "INACTIVE" in reported["off"][1]


def test_a_publisher_sees_outcomes_but_no_receiver_details(
    publishing: Caller, manager: Caller, publisher: Publisher
) -> None:
    message = factories.message(publisher=publisher)
    delivery = factories.delivery(
        Status.CANCELLED, message=message, attempts=1, reason="cancelled by ann: RECEIVER"
    )
    factories.attempt(
        delivery,
        outcome="SERVER_ERROR",
        status_code=500,
        error="connection refused (receiver:81)",
        excerpt=b"RECEIVER",
    )
    address = f"messages/{message.public_id}"
    (shown,) = manager.get(address).body["deliveries"]
    (attempt,) = shown["attempts"]
    assert (shown["reason"], attempt["error"], attempt["excerpt"]) == (
        "cancelled by ann: RECEIVER",
        "connection refused (receiver:81)",
        "RECEIVER",
    )
    reported = publishing.get(address).body
    assert "receiver" not in str(reported).lower().replace("receive_count", "")
    (shown,) = reported["deliveries"]
    (attempt,) = shown["attempts"]
    assert (shown["status"], attempt["outcome"], attempt["status_code"]) == (
        "CANCELLED",
        "SERVER_ERROR",
        500,
    )
