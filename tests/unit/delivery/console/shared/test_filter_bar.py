"""The tabs and filters above a list: counts, chips, names with a slash, mistakes reported."""

from typing import Any

import pytest
from django.test import Client

from delivery.console.shared import tabs
from delivery.console.shared.filter_bar import active_chips
from delivery.console.shared.times import marked_up_time
from delivery.models import Delivery
from delivery.states import Status
from tests.support import factories
from tests.unit.delivery.console.refreshing import refresh

DELIVERIES, MESSAGES = "/admin/delivery/delivery/", "/admin/delivery/message/"
FAILED = (Status.REJECTED, Status.UNSUPPORTED, Status.FAILED, Status.EXPIRED)


def ids(answer: Any) -> list[int]:
    return [row.pk for row in answer.context["cl"].result_list]


@pytest.fixture
def rows(db: None) -> dict[Status, Delivery]:
    kept = (*FAILED, Status.PENDING, Status.DELIVERED, Status.IN_DOUBT)
    return {status: factories.delivery(status) for status in kept}


def counts(client: Client, address: str) -> dict[str, str]:
    answer = refresh(client, address, "tabs")
    return {shown.tab.title: str(shown.count) for shown in answer.context["tabs"]}


class TestTabs:
    def test_each_tab_of_the_deliveries_shows_its_statuses_newest_first(
        self, ann: Client, rows: dict[Status, Delivery]
    ) -> None:
        failed = sorted((rows[status].pk for status in FAILED), reverse=True)
        assert ids(ann.get(f"{DELIVERIES}?tab=failed")) == failed
        assert ids(ann.get(f"{DELIVERIES}?tab=waiting")) == [rows[Status.PENDING].pk]
        assert ids(ann.get(f"{DELIVERIES}?tab=in-doubt")) == [rows[Status.IN_DOUBT].pk]
        assert len(ids(ann.get(f"{DELIVERIES}?tab=nonsense"))) == len(rows)

    def test_the_tab_of_failures_has_pages(
        self, ann: Client, rows: dict[Status, Delivery], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("delivery.console.deliveries.admin.DeliveryAdmin.list_per_page", 3)
        failed = sorted((rows[status].pk for status in FAILED), reverse=True)
        first = ann.get(f"{DELIVERIES}?tab=failed")
        older = first.context["cl"].paginator.older_url
        assert ids(first) == failed[:3]
        assert ids(ann.get(DELIVERIES + older)) == failed[3:]

    def test_each_tab_of_the_messages_shows_those_with_such_a_delivery(
        self, ann: Client, rows: dict[Status, Delivery]
    ) -> None:
        failed = sorted((rows[status].message_id for status in FAILED), reverse=True)
        assert ids(ann.get(f"{MESSAGES}?tab=failed")) == failed
        assert ids(ann.get(f"{MESSAGES}?tab=waiting")) == [rows[Status.PENDING].message_id]

    def test_counts_are_those_of_the_other_filters(
        self, ann: Client, rows: dict[Status, Delivery]
    ) -> None:
        everything = {"All": "7", "Failed": "4", "Waiting": "1", "In doubt": "1"}
        assert counts(ann, DELIVERIES) == everything
        assert counts(ann, f"{DELIVERIES}?tab=failed&status=REJECTED") == everything
        assert counts(ann, MESSAGES) == everything
        of = rows[Status.REJECTED].subscription
        only = {"All": "1", "Failed": "1", "Waiting": "0", "In doubt": "0"}
        assert counts(ann, f"{DELIVERIES}?subscription={of}") == only
        assert set(counts(ann, f"{MESSAGES}?body=x&since=2000-01-01").values()) == {"None"}

    def test_a_count_ends_at_its_limit(
        self, ann: Client, rows: dict[Status, Delivery], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(tabs, "COUNT_LIMIT", 3)
        assert counts(ann, DELIVERIES)["Failed"] == "3+"

    def test_the_tab_names_what_is_resubmitted_and_cancelled(
        self, ann: Client, rows: dict[Status, Delivery]
    ) -> None:
        failed = ann.get(f"{DELIVERIES}?tab=failed").text
        waiting = ann.get(f"{DELIVERIES}?tab=waiting").text
        assert "Resubmit all" in failed
        assert "Cancel all" not in failed
        assert "Resubmit all" not in waiting
        assert "verb=CANCEL&amp;status=IN_DOUBT" in ann.get(f"{DELIVERIES}?tab=in-doubt").text


class TestChips:
    def chips(self, answer: Any) -> list[tuple[str, str, str]]:
        shown = active_chips(answer.context["cl"])
        return [(chip.title, chip.value, chip.address) for chip in shown]

    def test_each_active_filter_has_one_that_removes_only_itself(
        self, ann: Client, rows: dict[Status, Delivery]
    ) -> None:
        of = rows[Status.REJECTED].subscription
        query = f"status=REJECTED&subscriber={of.subscriber.name}&subscription={of.pk}"
        assert self.chips(ann.get(f"{DELIVERIES}?{query}&before=9999999999999999")) == [
            ("Status", "REJECTED", f"?subscriber={of.subscriber.name}&subscription={of.pk}"),
            ("Subscriber", of.subscriber.name, f"?status=REJECTED&subscription={of.pk}"),
            ("Subscription", str(of.pk), f"?status=REJECTED&subscriber={of.subscriber.name}"),
        ]

    def test_texts_searches_and_fields_of_django_have_them(self, ann: Client) -> None:
        body = self.chips(ann.get(f"{MESSAGES}?body=needle&since=2026-01-01T00:00:00&tab=failed"))
        assert [(title, value) for title, value, _ in body] == [
            ("Published since (UTC)", marked_up_time("2026-01-01T00:00:00")),
            ("Body", "needle"),
        ]
        factories.event_type("Demo.Order")
        kind = self.chips(ann.get("/admin/subscriptions/eventtype/?kind__exact=TOPIC&q=Demo"))
        assert [(title, address) for title, _, address in kind] == [
            ("Search", "?kind__exact=TOPIC"),
            ("Kind", "?q=Demo"),
        ]


class TestNames:
    def test_a_subscription_is_named_as_every_page_shows_it(
        self, ann: Client, rows: dict[Status, Delivery]
    ) -> None:
        row = rows[Status.REJECTED]
        assert ids(ann.get(f"{DELIVERIES}?subscription={row.subscription}")) == [row.pk]
        assert ids(ann.get(f"{MESSAGES}?subscription={row.subscription}")) == [row.message_id]
        event_type = row.subscription.event_type
        assert row.pk in ids(ann.get(f"{DELIVERIES}?event_type={event_type}"))

    @pytest.mark.parametrize(
        "address",
        [
            DELIVERIES,
            MESSAGES,
            "/admin/delivery/journalentry/",
            "/admin/delivery/historyhour/",
            "/admin/delivery/resubmission/add/",
        ],
    )
    def test_an_unknown_one_is_reported_with_the_nearest(
        self, ann: Client, rows: dict[Status, Delivery], address: str
    ) -> None:
        factories.subscription("contracts", subscriber=factories.subscriber("demo-billing"))
        page = ann.get(f"{address}?subscription=demo-billing/contract").text
        assert "There is no subscription &#x27;demo-billing/contract&#x27;." in page
        assert "Did you mean demo-billing/contracts?" in page

    def test_an_unknown_subscriber_is_reported_too(
        self, ann: Client, rows: dict[Status, Delivery]
    ) -> None:
        factories.subscriber("shop-crm")
        for address in (DELIVERIES, MESSAGES):
            page = ann.get(f"{address}?subscriber=shop-crn")
            assert "Did you mean shop-crm?" in page.text
            assert ids(page) == []
