"""The journal: entries are found by their objects, and link to them."""

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from delivery.console.journal import filters as journal_filters
from delivery.models import JournalEntry, Lane
from tests.support import factories

ROOT = "/admin/delivery/journalentry/"


def texts(client: Client, query: str) -> list[str]:
    return [row.text for row in client.get(f"{ROOT}?{query}").context["cl"].result_list]


@pytest.fixture
def entries(db: None) -> JournalEntry:
    """An entry about all kinds of objects, and one about other objects."""
    delivery = factories.delivery(
        subscription=factories.subscription("orders", subscriber=factories.subscriber("erp"))
    )
    other = factories.delivery()
    for text, about in (
        ("Erp is blocked: connection refused", delivery),
        ("something else", other),
    ):
        JournalEntry.objects.create(
            kind="BLOCKED",
            text=text,
            message_id=about.message_id,
            delivery_id=about.pk,
            subscription_id=about.subscription_id,
            lane_id=about.lane_id,
        )
    return JournalEntry.objects.order_by("id")[0]


@pytest.mark.parametrize(
    "query",
    [
        "kind=BLOCKED&lane=erp",
        "lane=erp",
        "subscription=orders",
        "subscription={0.subscription_id}",
        "delivery={0.delivery_id}",
        "message=msg_{0.message_id}",
        "text=connection+REFUSED",
    ],
)
def test_an_entry_is_found_by_every_related_object(
    ann: Client, entries: JournalEntry, query: str
) -> None:
    assert texts(ann, query.format(entries)) == [entries.text]


@pytest.mark.parametrize(
    "query", ["delivery=x", "subscription=nobody", "lane=nobody", "message=x", "text=no such"]
)
def test_an_unrelated_object_finds_nothing(ann: Client, entries: JournalEntry, query: str) -> None:
    assert texts(ann, query) == []


def test_leads_to_all_it_is_about(ann: Client, entries: JournalEntry) -> None:
    page = ann.get(ROOT).text
    for address, text in (
        (f"/admin/delivery/message/{entries.message_id}/change/", f"msg_{entries.message_id}"),
        (
            f"/admin/delivery/delivery/{entries.delivery_id}/change/",
            f"delivery {entries.delivery_id}",
        ),
        (f"/admin/subscriptions/subscription/{entries.subscription_id}/", "erp/orders"),
        ("/admin/delivery/lane/?q=erp", "lane erp"),
    ):
        assert f'<a class="inturn-link" href="{address}">{text}</a>' in page


def test_a_lane_of_no_subscriber_is_named_too(ann: Client) -> None:
    lane = Lane.objects.get(kind="RETRY")
    JournalEntry.objects.create(kind="SUSPENDED", text="It is.", lane_id=lane.pk)
    assert (
        '<a class="inturn-link" href="/admin/delivery/lane/">lane retry:0</a>' in ann.get(ROOT).text
    )
    assert texts(ann, "lane=retry:0") == ["It is."]


def test_a_removed_object_is_shown_by_its_number(ann: Client) -> None:
    JournalEntry.objects.create(
        kind="BLOCKED", text="It was.", subscription_id=987_654, lane_id=987_654
    )
    page = ann.get(ROOT).text
    assert "subscription 987654" in page
    assert "lane 987654" not in page


def test_words_are_searched_in_the_newest_entries_only(
    ann: Client, entries: JournalEntry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal_filters, "SEARCHED", 1)
    assert texts(ann, "text=connection") == []
    assert texts(ann, "text=else") == ["something else"]


def test_the_number_of_queries_does_not_depend_on_the_filters(
    ann: Client, entries: JournalEntry
) -> None:
    # Session, user, lanes, subscriptions and first id of the filters, newest entry, page, its
    # lanes, its subscriptions.
    query = "kind=BLOCKED&lane=erp&subscription=orders&text=connection&since=2020-01-01T00:00"
    with CaptureQueriesContext(connection) as queries:
        ann.get(f"{ROOT}?{query}")
    assert len(queries) == 11
