"""The status pages of subscribers and subscriptions, and the strips of lanes."""

import pytest
from django.contrib.auth.models import AnonymousUser
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from delivery.console.lanes import strips
from delivery.console.overview import page as overview
from delivery.console.subscribers.status import read_subscriber
from delivery.models import Delivery, JournalEntry, Lane
from delivery.states import Status
from subscriptions.models import Subscriber, SubscriptionStatus
from tests.support import factories
from tests.unit.delivery.console.blocking import block, suspend
from tests.unit.delivery.console.refreshing import refresh

ROOT = "/admin/subscriptions"
SENDING = {"max_in_flight": "10", "max_queued_to_send": "100", "refill_level": "50"}
NO_KEYS = {"keys-TOTAL_FORMS": "0", "keys-INITIAL_FORMS": "0"}


@pytest.fixture
def head(db: None) -> Delivery:
    subscription = factories.subscription("orders", subscriber=factories.subscriber("crm"))
    return factories.delivery(subscription=subscription)


def lane_of(delivery: Delivery) -> Lane:
    assert delivery.lane is not None
    return delivery.lane


class TestStrips:
    def test_show_the_next_deliveries_in_the_order_of_sending(self, head: Delivery) -> None:
        subscriber = head.subscription.subscriber
        second = factories.delivery(subscription=factories.subscription(subscriber=subscriber))
        third = factories.delivery(subscription=head.subscription)
        (strip,) = strips.read_strips([lane_of(head).pk])
        assert [block.id for block in strip.blocks] == [head.pk, second.pk, third.pk]
        assert strip.blocks[0].colour == strip.blocks[2].colour
        assert (str(strip.waiting), strip.behind) == ("3", None)

    def test_leave_out_held_deliveries(self, head: Delivery) -> None:
        subscriber = head.subscription.subscriber
        factories.delivery(
            subscription=factories.subscription(
                subscriber=subscriber, status=SubscriptionStatus.HELD
            )
        )
        (strip,) = strips.read_strips([lane_of(head).pk])
        assert [block.id for block in strip.blocks] == [head.pk]

    def test_count_the_deliveries_behind_the_blocks(
        self, head: Delivery, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(strips, "BLOCKS", 2)
        for _ in range(4):
            factories.delivery(subscription=head.subscription)
        (strip,) = strips.read_strips([lane_of(head).pk])
        assert (len(strip.blocks), str(strip.behind)) == (2, "3")

    def test_of_the_overview_are_the_moving_lanes_with_the_oldest_deliveries(
        self, head: Delivery, ann: Client
    ) -> None:
        stopped = block(factories.delivery())
        later = factories.delivery()
        idle = factories.subscription()
        page = overview.read_overview(now=timezone.now(), user=AnonymousUser())
        assert [strip.lane.pk for strip in page.moving] == [lane_of(head).pk, lane_of(later).pk]
        assert page.lanes[0].strip is not None
        assert page.lanes[0].strip.lane.pk == stopped.pk
        assert idle.subscriber.name not in [strip.name for strip in page.moving]
        assert "In turn" in ann.get("/admin/").text


class TestSubscriberPage:
    def test_a_blocked_one_shows_cause_head_and_remedies(self, head: Delivery, ann: Client) -> None:
        lane = block(head)
        page = ann.get(f"{ROOT}/subscriber/{head.subscription.subscriber_id}/").text
        assert "connection refused" in page
        assert head.message.public_id in page
        for verb in ("retry", f"skip/{head.pk}"):
            assert f"/admin/delivery/lane/{lane.pk}/{verb}/" in page

    def test_a_suspended_one_offers_to_resume(self, head: Delivery, ann: Client) -> None:
        lane = suspend(head)
        page = ann.get(f"{ROOT}/subscriber/{head.subscription.subscriber_id}/").text
        assert f"/admin/delivery/lane/{lane.pk}/resume/" in page

    def test_lists_its_subscriptions_with_their_backlogs(self, head: Delivery) -> None:
        factories.delivery(subscription=head.subscription)
        other = factories.subscription("invoices", subscriber=head.subscription.subscriber)
        status = read_subscriber(head.subscription.subscriber, now=timezone.now())
        assert [(row.subscription, str(row.standing.waiting)) for row in status.subscriptions] == [
            (head.subscription, "2"),
            (other, "0"),
        ]

    def test_shows_its_latest_events_and_changes(self, head: Delivery, ann: Client) -> None:
        JournalEntry.objects.create(kind="BLOCKED", text="Blocked: 500.", lane_id=lane_of(head).pk)
        page_of = f"{ROOT}/subscriber/{head.subscription.subscriber_id}/"
        ann.post(f"{page_of}hold/", {"next": "/admin/"})
        page = ann.get(page_of).text
        assert "Blocked: 500." in page
        assert "Latest changes" in page
        assert "changed by ann" in page

    def test_readers_see_no_buttons(self, head: Delivery, reader: Client) -> None:
        block(head)
        page = reader.get(f"{ROOT}/subscriber/{head.subscription.subscriber_id}/").text
        assert "connection refused" in page
        for button in ("Deactivate", "Retry now", "Skip this message", ">Edit<"):
            assert button not in page

    def test_costs_as_many_queries_with_many_subscriptions_as_with_few(
        self, head: Delivery, ann: Client, django_assert_max_num_queries: DjangoAssertNumQueries
    ) -> None:
        for _ in range(20):
            subscription = factories.subscription(subscriber=head.subscription.subscriber)
            factories.delivery(subscription=subscription)
        with django_assert_max_num_queries(23):
            refresh(ann, f"{ROOT}/subscriber/{head.subscription.subscriber_id}/")

    def test_saving_the_form_leads_to_it(self, ann: Client) -> None:
        values = {
            "name": "depot",
            "match_mode": "ALL",
            "processing": "SERIAL",
            **SENDING,
            **NO_KEYS,
        }
        answer = ann.post(f"{ROOT}/subscriber/add/", values)
        made = Subscriber.objects.get(name="depot")
        assert answer.headers["Location"] == f"{ROOT}/subscriber/{made.pk}/"


class TestLastDelivered:
    def test_a_quiet_thing_says_when_it_was_last_delivered_to(self, ann: Client) -> None:
        row = factories.delivery(Status.DELIVERED).subscription
        factories.delivery(Status.REJECTED, subscription=row)
        addresses = (f"{ROOT}/subscription/{row.pk}/", f"{ROOT}/subscriber/{row.subscriber_id}/")
        for address in addresses:
            assert "no waiting deliveries, last delivered" in " ".join(
                ann.get(address).text.split()
            )
        factories.delivery(subscription=row)
        for address in addresses:
            assert "last delivered" not in ann.get(address).text


class TestSubscriptionPage:
    def test_shows_its_last_failures_newest_first(self, head: Delivery, ann: Client) -> None:
        failed = [
            factories.delivery(status, subscription=head.subscription, reason=f"because {status}")
            for status in (Status.REJECTED, Status.DELIVERED, Status.FAILED)
        ]
        page = ann.get(f"{ROOT}/subscription/{head.subscription_id}/").text
        assert page.index("because FAILED") < page.index("because REJECTED")
        assert f"delivery {failed[1].pk}" not in page

    def test_leads_to_a_replay_for_those_who_may(
        self, head: Delivery, ann: Client, reader: Client
    ) -> None:
        form = f"/admin/delivery/replay/add/?subscription={head.subscription_id}"
        address = f"{ROOT}/subscription/{head.subscription_id}/"
        assert form in ann.get(address).text
        assert form not in reader.get(address).text

    def test_the_one_that_stops_the_lane_shows_the_remedies(
        self, head: Delivery, ann: Client
    ) -> None:
        lane = block(head)
        other = factories.subscription(subscriber=head.subscription.subscriber)
        retry = f"/admin/delivery/lane/{lane.pk}/retry/"
        assert retry in ann.get(f"{ROOT}/subscription/{head.subscription_id}/").text
        assert retry not in ann.get(f"{ROOT}/subscription/{other.pk}/").text

    def test_the_next_deliveries_of_its_lane_are_drawn(self, head: Delivery, ann: Client) -> None:
        page = ann.get(f"{ROOT}/subscription/{head.subscription_id}/").text
        assert "Next deliveries of crm" in page
        assert f"/admin/delivery/delivery/{head.pk}/change/" in page
