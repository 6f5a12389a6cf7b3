"""The overview: its counts, and a cost that does not depend on the backlog."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import AnonymousUser
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from delivery.console.overview import page as overview
from delivery.console.overview.page import Overview
from delivery.models import Delivery, Lane, Message, UrlHealth, UrlState
from delivery.standing import bounded_counts
from delivery.standing.bounded_counts import Bounded
from delivery.states import Status
from subscriptions.models import Installation, JoinMode, Mode, Subscription
from tests.support import factories
from tests.unit.delivery.console.blocking import block, suspend
from tests.unit.delivery.console.refreshing import refresh

INDEX = "/admin/"


def read() -> Overview:
    return overview.read_overview(now=timezone.now(), user=AnonymousUser())


@pytest.mark.django_db
class TestTiles:
    def test_rates_are_those_of_the_last_minute(self) -> None:
        now = timezone.now()
        for age in (10, 20, 59, 61, 600):
            message = factories.message(published_at=now - timedelta(seconds=age))
            subscription = factories.subscription(event_type=message.event_type)
            factories.delivery(
                Status.DELIVERED,
                message=message,
                subscription=subscription,
                settled_at=now - timedelta(seconds=age),
            )
        factories.delivery(Status.REJECTED, settled_at=now)
        Message.objects.exclude(deliveries__status=Status.DELIVERED).update(
            published_at=now - timedelta(hours=1)
        )
        shown = overview.read_overview(now=now, user=AnonymousUser())
        assert shown.accepted_per_second == pytest.approx(3 / 60)
        assert shown.delivered_per_second == pytest.approx(3 / 60)

    def test_a_high_rate_is_measured_over_the_span_of_the_newest_rows(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(overview, "RATE_ROWS", 10)
        now = timezone.now()
        event_type, publisher = factories.event_type(), factories.publisher()
        for number in range(40):
            at = now - timedelta(milliseconds=100 * number + 100)
            factories.message(event_type=event_type, publisher=publisher, published_at=at)
        assert overview.read_overview(
            now=now, user=AnonymousUser()
        ).accepted_per_second == pytest.approx(10)

    def test_an_empty_installation_is_no_error(self) -> None:
        shown = read()
        assert (shown.accepted_per_second, shown.delivered_per_second, shown.oldest_at) == (
            0,
            0,
            None,
        )
        assert not shown.has_subscriptions
        assert str(shown.backlog) == "0"

    def test_held_deliveries_are_counted_apart(self) -> None:
        now = timezone.now()
        held = factories.subscription(status="INACTIVE")
        factories.delivery(
            subscription=held,
            message=factories.message(
                event_type=held.event_type, published_at=now - timedelta(days=3)
            ),
        )
        waiting = factories.delivery()
        shown = read()
        assert (str(shown.backlog), str(shown.held)) == ("2", "1")
        assert shown.oldest_at == waiting.message.published_at

    @pytest.mark.parametrize("limit", [1, 2, 4, 9])
    def test_a_backlog_beyond_the_limit_hides_no_lane(
        self, monkeypatch: pytest.MonkeyPatch, limit: int
    ) -> None:
        monkeypatch.setattr(overview, "BACKLOG_LIMIT", limit)
        rows = [factories.subscription() for _ in range(3)]
        held = factories.subscription(status="INACTIVE")
        # The last lane of the index has the oldest delivery.
        for subscription in (*reversed(rows), held):
            for _ in range(2):
                factories.delivery(subscription=subscription)
        oldest = Delivery.objects.filter(subscription=rows[-1]).earliest("id")
        shown = read()
        assert (shown.backlog.found, shown.held.found) == (min(8, limit + 1), min(2, limit + 1))
        assert shown.oldest_at == oldest.message.published_at
        assert [strip.lane.subscriber_id for strip in shown.moving] == [
            row.subscriber_id for row in reversed(rows)
        ]

    def test_the_backlog_shows_its_part_in_mailboxes(self) -> None:
        now = timezone.now()
        box = factories.subscription(mode=Mode.PULL)
        old = factories.message(event_type=box.event_type, published_at=now - timedelta(days=3))
        factories.delivery(subscription=box, message=old)
        factories.delivery(subscription=box, next_attempt_at=now + timedelta(minutes=5))
        factories.delivery(subscription=factories.subscription(mode=Mode.PULL, status="INACTIVE"))
        factories.delivery(
            Status.IN_FLIGHT, subscription=box, lease_expires_at=now - timedelta(minutes=5)
        )
        waiting = factories.delivery()
        shown = read()
        assert (str(shown.backlog), str(shown.in_mailboxes)) == ("4", "3")
        assert shown.oldest_at == waiting.message.published_at

    def test_what_waits_in_a_join_is_in_no_mailbox(self) -> None:
        joining = factories.subscription(join_mode=JoinMode.ALL, join_name="order")
        for _ in range(2):
            factories.delivery(subscription=joining, lane=None)
        factories.delivery(subscription=factories.subscription(mode=Mode.PULL))
        shown = read()
        assert (str(shown.backlog), str(shown.in_mailboxes)) == ("3", "1")

    def test_in_doubt_counts_deliveries_that_a_person_must_decide(self) -> None:
        factories.delivery(Status.IN_DOUBT)
        factories.delivery(Status.FAILED)
        assert str(read().in_doubt) == "1"


@pytest.mark.django_db
class TestBlockedSubscribers:
    def test_shows_waiting_deliveries_and_those_that_would_continue(self) -> None:
        crm = factories.subscriber("crm")
        down = factories.subscription(subscriber=crm)
        head = factories.delivery(subscription=down)
        factories.delivery(subscription=down)
        for _ in range(2):
            factories.delivery(subscription=factories.subscription(subscriber=crm))
        factories.delivery(subscription=factories.subscription(subscriber=crm, status="INACTIVE"))
        block(head)
        (lane,) = read().lanes
        assert (lane.name, lane.message, lane.subscription) == (
            "crm",
            head.message.public_id,
            down.name,
        )
        assert (str(lane.waiting), str(lane.freed), lane.others) == ("3", "2", 2)
        assert lane.unblocks == "Resumes 2 other subscriptions of crm (2 waiting messages)."

    def test_says_so_when_no_other_subscription_would_continue(self) -> None:
        head = factories.delivery(
            subscription=factories.subscription(subscriber=factories.subscriber("crm"))
        )
        block(head)
        assert read().lanes[0].unblocks.startswith("crm has no other subscription")

    def test_waiting_is_counted_up_to_a_limit(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("delivery.console.lanes.stopped_lanes.WAITING_LIMIT", 2)
        subscription = factories.subscription()
        head, *_ = (factories.delivery(subscription=subscription) for _ in range(5))
        block(head)
        assert str(read().lanes[0].waiting) == "2+"

    def test_a_lane_with_a_settled_or_held_head_is_not_blocked(self) -> None:
        settled, held = factories.delivery(Status.CANCELLED), factories.delivery()
        block(settled)
        block(held)
        Subscription.objects.filter(pk=held.subscription_id).update(status="INACTIVE")
        assert read().lanes == []

    def test_the_longest_blocked_lane_is_first(self) -> None:
        lanes = [block(factories.delivery()) for _ in range(3)]
        for age, lane in zip((1, 3, 2), lanes, strict=True):
            Lane.objects.filter(pk=lane.pk).update(since=timezone.now() - timedelta(hours=age))
        assert [lane.lane_id for lane in read().lanes] == [lanes[1].pk, lanes[2].pk, lanes[0].pk]

    def test_a_suspended_lane_is_shown_with_the_effect_of_resuming(self) -> None:
        top = factories.delivery(attempts=5)
        suspend(top)
        (lane,) = read().lanes
        assert (lane.is_suspended, lane.may_skip) == (True, True)
        assert lane.resumes == f"{top.message.public_id} is retried, with all its attempts."

    def test_after_a_rejection_only_waiting_deliveries_continue(self) -> None:
        rejected = factories.delivery(Status.REJECTED)
        suspend(rejected)
        assert read().lanes[0].resumes == "The delivery stays REJECTED; no other delivery waits."
        factories.delivery(subscription=rejected.subscription)
        (lane,) = read().lanes
        assert (lane.may_skip, str(lane.waiting)) == (False, "1")
        assert lane.resumes == "The rejection stays. Resumes 1 waiting message."


class TestPage:
    def test_costs_the_same_number_of_queries_however_many_are_blocked(
        self, ann: Client, django_assert_num_queries: DjangoAssertNumQueries
    ) -> None:
        for _ in range(12):
            block(factories.delivery())
        # Session and user, ten of the overview's own, whether there are subscriptions, and the
        # card of the first steps.
        with django_assert_num_queries(23):
            refresh(ann, INDEX, "overview-now")

    def test_the_oldest_delivery_is_shown_with_its_age_and_lane(self, ann: Client) -> None:
        factories.delivery(
            message=factories.message(published_at=timezone.now() - timedelta(seconds=317))
        )
        page = ann.get(INDEX).text
        assert ">5 min</time>" in page
        assert "age of the oldest message in a lane" in page

    def test_without_subscriptions_shows_the_first_step(self, ann: Client) -> None:
        assert "Create the first subscription" in ann.get(INDEX).text

    def test_shows_no_button_without_the_right(self, reader: Client, ann: Client) -> None:
        block(factories.delivery())
        assert "Deactivate" in ann.get(INDEX).text
        page = reader.get(INDEX).text
        assert "connection refused" in page
        for button in ("Deactivate", "Retry now", "Skip this message"):
            assert button not in page

    def test_offers_to_hold_all_sending_until_it_is_held(self, ann: Client) -> None:
        assert "Hold all sending" in ann.get(INDEX).text
        Installation.objects.update_or_create(pk=1, defaults={"sending": "HELD"})
        assert "Hold all sending" not in ann.get(INDEX).text

    def test_a_suspended_lane_offers_to_resume_it_and_not_to_retry(
        self, reader: Client, ann: Client
    ) -> None:
        lane = suspend(factories.delivery(attempts=5))
        page = ann.get(INDEX).text
        assert f"/admin/delivery/lane/{lane.pk}/resume/" in page
        assert "Skip this message" in page
        assert "Retry now" not in page
        assert "waits for a person" in page
        assert "no probe URL" in page
        assert "Resume" not in reader.get(INDEX).text

    def test_a_suspended_lane_shows_its_probe_and_the_next_call(self, ann: Client) -> None:
        subscription = factories.subscription(probe_url="https://receiver.example/health")
        suspend(
            factories.delivery(subscription=subscription, attempts=5),
            probes_in=timedelta(seconds=40),
        )
        page = ann.get(INDEX).text
        assert "https://receiver.example/health" in page
        assert "waits for a person" not in page

    def test_after_a_rejection_nothing_can_be_skipped(self, ann: Client) -> None:
        suspend(factories.delivery(Status.REJECTED))
        page = ann.get(INDEX).text
        assert "after a rejection" in page
        assert "Skip this message" not in page


def test_a_bounded_number_shows_that_there_are_more() -> None:
    assert str(Bounded(10_001, bounded_counts.WAITING_LIMIT)) == "10,000+"
    assert str(Bounded(10_000, bounded_counts.WAITING_LIMIT)) == "10,000"
    assert Bounded(1, 10).of("message") == "1 message"
    assert not Bounded(0, 10)


@pytest.mark.django_db
def test_a_subscriber_that_only_its_url_stops_is_stopped(ann: Client) -> None:
    block(factories.delivery())
    row = factories.delivery(
        subscription=factories.subscription(policy=factories.policy("workfront-48h"))
    ).subscription
    UrlHealth.objects.create(url=row.endpoint, state=UrlState.FROZEN, failures_in_row=7)
    page = ann.get("/admin/")
    assert page.context["overview"].stopped == 2
    assert [subscriber for subscriber, _ in page.context["overview"].by_url] == [row.subscriber]
    assert "7 attempts at its URL failed in a row" in page.text
    listed = ann.get("/admin/delivery/lane/?state=STOPPED").context["cl"].result_list
    assert len(listed) == 2


@pytest.mark.django_db
def test_of_many_stopped_lanes_the_first_are_listed_and_the_others_counted(
    ann: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("delivery.console.lanes.stopped_lanes.SHOWN", 2)
    for _ in range(5):
        block(factories.delivery(Status.PENDING))
    text = " ".join(ann.get("/admin/").text.split())
    assert "> 5 </p>" in text
    assert "subscribers, the first listed below" in text
    assert "These are stopped longest; the others are in" in text
    assert text.count("Skip this message") == 2
