"""The candidates of a publication, and the subscriptions that match."""

import pytest
from django.db import connection

from subscriptions.filters import document
from subscriptions.matching import match
from subscriptions.matching.candidates import _CANDIDATES
from subscriptions.matching.match import candidates, find_mismatch, qualifying_candidates
from subscriptions.models import EventType, Subscription
from tests.support import factories


@pytest.fixture
def event_type(db: None) -> EventType:
    event_type = factories.event_type()
    for header_filter_string in ("", "proj1", "proj2", "Proj1"):
        factories.subscription(
            header_filter_string, event_type=event_type, header_filter_string=header_filter_string
        )
    return event_type


def strings(event_type: EventType, *headers: dict[str, str]) -> list[str]:
    return [candidate.header_filter_string for candidate in candidates(event_type, headers)]


def test_only_subscriptions_with_the_header_string_of_the_message_are_read(
    event_type: EventType,
) -> None:
    assert strings(event_type, {"filter-string": "proj1"}) == ["", "proj1"]
    assert strings(event_type, {"priority": "proj1"}) == [""]
    assert strings(event_type, {"filter-string": "proj1"}, {}, {"filter-string": "proj2"}) == [
        "",
        "proj1",
        "proj2",
    ]


def test_each_message_of_a_batch_keeps_to_its_own_header_string(event_type: EventType) -> None:
    sent = [{"filter-string": "proj1"}, {"filter-string": "proj2"}]
    found = candidates(event_type, sent)
    chosen = [qualifying_candidates(found, document(headers, b"{}")) for headers in sent]
    assert [[each.header_filter_string for each in some] for some in chosen] == [
        ["", "proj1"],
        ["", "proj2"],
    ]


def test_matching_uses_the_index(event_type: EventType) -> None:
    subscription = factories.subscription(event_type=event_type)
    Subscription.objects.bulk_create(
        Subscription(
            name=f"project-{number}",
            subscriber=subscription.subscriber,
            event_type=event_type,
            policy=subscription.policy,
            endpoint=subscription.endpoint,
            header_filter_string=f"project-{number}",
        )
        for number in range(1000)
    )
    with connection.cursor() as cursor:
        # With a few rows any index is equally good.
        cursor.execute("ANALYZE subscriptions_subscription")
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute(f"EXPLAIN {_CANDIDATES}", [event_type.pk, ["", "proj1"]])
        plan = "\n".join(line for (line,) in cursor.fetchall())
    assert "subscription_matching" in plan
    condition = plan.partition("subscription_matching")[2].splitlines()[1]
    assert "Index Cond" in condition
    assert "header_filter_string" in condition


def test_more_filters_than_ten_thousand_in_rotation_are_compiled_once() -> None:
    match._compiled.cache_clear()
    message = document({"number": "7"}, b"")
    texts = [f"$$->'Header'->>'number' = '{number}'" for number in range(10_001)]
    for _ in range(2):
        assert [text for text in texts if find_mismatch("", text, message) is None] == [texts[7]]
    assert match._compiled.cache_info().misses == len(texts)
