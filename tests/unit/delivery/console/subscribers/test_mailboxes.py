"""Mailboxes in the console: configured, inspected, and their deliveries recognisable."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone

from delivery.console.subscribers import mailboxes
from delivery.database.statements import statement
from delivery.models import JournalEntry, MailboxRate
from delivery.states import Status
from subscriptions.models import Mode, Subscription, SubscriptionStatus
from tests.support import factories
from tests.unit.delivery.console.fetching import SOON, fetched, released
from tests.unit.delivery.console.subscription_form import form_values

ROOT = "/admin/subscriptions"


class TestConfiguring:
    @pytest.fixture
    def values(self, db: None) -> dict[str, Any]:
        """The form's values, with hidden fields and values typed before the mode."""
        return form_values(
            name="orders",
            policy="strict",
            mode="PULL",
            endpoint="no endpoint at all",
            header_lines="neither a header",
            timeout_seconds="5",
            max_receives="7",
            auth_type="basic",
        )

    def test_hidden_fields_are_ignored(self, ann: Client, values: dict[str, Any]) -> None:
        page = ann.post(f"{ROOT}/subscription/add/", values, follow=True)
        made = Subscription.objects.get()
        assert "wait in its mailbox" in page.text
        assert (made.endpoint, made.headers, made.auth["type"]) == ("", {}, "none")
        assert (made.policy.name, made.timeout_seconds, made.max_receives) == ("teamforge", 30, 7)

    @pytest.mark.parametrize(("status", "journal"), [("SHADOW", []), ("HELD", ["HELD"]), ("", [])])
    def test_a_new_one_can_have_another_status(
        self, ann: Client, values: dict[str, Any], status: str, journal: list[str]
    ) -> None:
        ann.post(f"{ROOT}/subscription/add/", values | {"status": status})
        made = Subscription.objects.get()
        assert made.status == (status or "ACTIVE")
        assert [entry.kind for entry in JournalEntry.objects.all()] == journal
        assert 'name="status"' not in ann.get(f"{ROOT}/subscription/{made.pk}/change/").text

    def test_no_secret_is_made(self, ann: Client, values: dict[str, Any]) -> None:
        page = ann.post(f"{ROOT}/subscription/add/", values, follow=True)
        assert not Subscription.objects.get().secrets.exists()
        assert "Rotate secret" not in page.text

    def test_the_mode_stays(self, ann: Client, values: dict[str, Any]) -> None:
        ann.post(f"{ROOT}/subscription/add/", values)
        made = Subscription.objects.get()
        changed = values | {
            "mode": "PUSH",
            "endpoint": "https://127.0.0.1/hook",
            "max_receives": "8",
        }
        ann.post(f"{ROOT}/subscription/{made.pk}/change/", changed)
        made.refresh_from_db()
        assert (made.mode, made.endpoint, made.max_receives) == ("PULL", "", 8)

    def test_rotating_is_refused_without_a_secret(self, ann: Client, pulled: Subscription) -> None:
        page = ann.post(f"{ROOT}/subscription/{pulled.pk}/rotate/", follow=True)
        assert "has no signing secret" in page.text
        assert not pulled.secrets.exists()


class TestFigures:
    def test_distinguish_available_fetched_and_delayed_messages(self, pulled: Subscription) -> None:
        factories.delivery(subscription=pulled)
        fetched(pulled, ends_in=-SOON)
        released(pulled, until=-SOON)
        fetched(pulled)
        released(pulled)
        factories.delivery(Status.DELIVERED, subscription=pulled)
        box = mailboxes.mailbox_of_subscription(pulled.pk, now=timezone.now())
        assert box is not None
        assert [
            str(count) for count in (box.available, box.in_flight, box.delayed, box.held)
        ] == list("3110")
        assert str(box.holds) == "5"

    def test_messages_of_an_inactive_subscription_are_held(self, pulled: Subscription) -> None:
        Subscription.objects.update(status=SubscriptionStatus.INACTIVE)
        factories.delivery(subscription=pulled)
        fetched(pulled)
        box = mailboxes.mailboxes_of_subscribers([pulled.subscriber_id], now=timezone.now())[
            pulled.subscriber_id
        ]
        assert [str(count) for count in (box.available, box.in_flight, box.held)] == ["0", "1", "1"]

    def test_rates_are_of_the_last_minute_that_is_complete(self, pulled: Subscription) -> None:
        now = timezone.now().replace(second=35, microsecond=0)
        for seconds_ago, received in ((5, 100), (15, 1), (65, 10), (75, 1000)):
            MailboxRate.objects.create(
                subscriber=pulled.subscriber,
                at=now - timedelta(seconds=seconds_ago),
                slot=0,
                received=received,
            )
        box = mailboxes.mailbox_of_subscription(pulled.pk, now=now)
        assert box is not None
        assert box.received_per_minute == 11

    def test_a_subscriber_without_pull_subscription_has_no_mailbox(self, db: None) -> None:
        row = factories.subscription()
        assert mailboxes.mailbox_of_subscription(row.pk, now=timezone.now()) is None
        assert mailboxes.mailboxes_of_subscribers([row.subscriber_id], now=timezone.now()) == {}

    def test_are_counted_on_the_indexes_of_mailboxes_alone(self, pulled: Subscription) -> None:
        other = factories.subscription(mode=Mode.PULL)
        for _ in range(300):
            factories.delivery(Status.DELIVERED, subscription=pulled, attempts=1)
            factories.delivery(subscription=other)
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE delivery_delivery")
        plan = planned("mailboxes", {"subscriptions": [pulled.pk], "subscribers": [], "limit": 10})
        for index in ("delivery_in_mailbox", "delivery_delayed", "delivery_leased"):
            assert index in plan
        assert "Seq Scan on delivery_waiting" not in plan


def planned(name: str, parameters: dict[str, Any]) -> str:
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN {statement(name)}", parameters)
        return "\n".join(row[0] for row in cursor.fetchall())


class TestMailboxPages:
    def test_the_subscriptions_page_shows_its_mailbox(
        self, ann: Client, pulled: Subscription
    ) -> None:
        fetched(pulled)
        page = ann.get(f"{ROOT}/subscription/{pulled.pk}/").text
        assert "In the mailbox" in page
        assert "fetched, not acknowledged yet" in page
        assert "1 in the mailbox" in page

    def test_the_subscribers_page_shows_how_to_fetch(
        self, ann: Client, pulled: Subscription
    ) -> None:
        page = ann.get(f"{ROOT}/subscriber/{pulled.subscriber_id}/").text
        assert "/api/v1/mailboxes/depot/next" in page
        assert "manage.py listen depot" in page

    def test_commands_contain_no_key(self, ann: Client, pulled: Subscription) -> None:
        page = ann.get(f"{ROOT}/subscriber/{pulled.subscriber_id}/").text
        assert "export INTURN_FETCH_KEY=$SUBSCRIBER_KEY" in page
        assert "--key" not in page

    def test_a_subscriber_without_one_has_no_such_panel(self, ann: Client) -> None:
        row = factories.subscription()
        page = ann.get(f"{ROOT}/subscriber/{row.subscriber_id}/").text
        assert "manage.py listen" not in page

    def test_the_overview_shows_the_mailboxes_with_the_oldest_first(
        self, ann: Client, pulled: Subscription
    ) -> None:
        factories.delivery(subscription=pulled)
        later = factories.subscription(mode=Mode.PULL, subscriber=factories.subscriber("office"))
        fetched(later)
        page = ann.get("/admin/").text
        assert page.index("depot") < page.index("office")

    def test_the_backlog_of_a_list_includes_fetched_messages(
        self, ann: Client, pulled: Subscription
    ) -> None:
        factories.delivery(subscription=pulled)
        fetched(pulled)
        released(pulled)
        for address in ("subscription", "subscriber"):
            assert ">3" in ann.get(f"{ROOT}/{address}/").text.replace("\n", "").replace(" ", ""), (
                address
            )


class TestADeliveredMessage:
    def test_differs_from_a_published_one(self, ann: Client) -> None:
        delivered = factories.message(destination="crm/orders")
        published = factories.message()
        assert (
            "delivered to crm/orders"
            in ann.get(f"/admin/delivery/message/{delivered.pk}/change/").text
        )
        assert (
            "all matching subscriptions"
            in ann.get(f"/admin/delivery/message/{published.pk}/change/").text
        )

    @pytest.mark.parametrize("asked", ["delivered", "published"])
    def test_is_found_by_its_destination(self, ann: Client, asked: str) -> None:
        made = {"delivered": factories.message(destination="crm"), "published": factories.message()}
        page = ann.get(f"/admin/delivery/message/?destination={asked}")
        assert [row.pk for row in page.context["cl"].result_list] == [made[asked].pk]
