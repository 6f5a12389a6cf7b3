"""Stopped queue groups, and the retry lane, on the overview."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from delivery.console.event_types import queue_groups
from delivery.console.event_types.queue_groups import DownGroup
from delivery.models import Delivery, Lane, Message, UrlHealth
from delivery.standing import retry_lane
from delivery.standing.reading import standing_of_groups
from delivery.standing.vocabulary import State
from delivery.states import Status
from subscriptions.models import EventType, Subscription
from tests.support import factories

INDEX = "/admin/"

pytestmark = pytest.mark.django_db


def down() -> list[DownGroup]:
    return queue_groups.groups_down(limit=10)


class QueueJobs:
    """A QUEUE event type with the endpoints of one group."""

    def __init__(self, endpoints: int, **fields: str) -> None:
        self.event_type: EventType = factories.event_type(kind="QUEUE")
        self.endpoints: list[Subscription] = [
            factories.subscription(event_type=self.event_type, **fields) for _ in range(endpoints)
        ]

    def publish(self, *failed: Subscription, lane: int = 0) -> Message:
        """Create a message that the `failed` endpoints, DOWN since, refused; no other was tried."""
        message = factories.message(event_type=self.event_type)
        for endpoint in self.endpoints:
            row = factories.delivery(
                subscription=endpoint,
                message=message,
                lane=Lane.objects.get(kind="QUEUE", number=lane),
                queue_group=0,
                attempts=int(endpoint in failed),
                skipped=endpoint in failed,
            )
            if endpoint in failed:
                factories.endpoint_down(row)
        return message


class TestQueueGroups:
    def test_a_group_is_down_when_every_endpoint_failed_and_messages_wait(self) -> None:
        jobs = QueueJobs(2, filter="$$->'Body'->>'size' = 'large'")
        first, second = jobs.endpoints
        oldest = jobs.publish(first, lane=1)
        assert down() == []
        jobs.publish(second, lane=2)
        jobs.publish()
        (group,) = down()
        assert (group.event, group.condition) == (jobs.event_type.name, first.filter)
        assert (group.message, str(group.waiting)) == (oldest.public_id, "3")
        assert {endpoint.subscription for endpoint in group.endpoints} == {str(first), str(second)}
        assert {endpoint.reason for endpoint in group.endpoints} == {"503: busy"}

    def test_an_inactive_endpoint_does_not_count(self) -> None:
        jobs = QueueJobs(2)
        first, second = jobs.endpoints
        Subscription.objects.filter(pk=second.pk).update(status="INACTIVE")
        jobs.publish(first)
        assert [len(group.endpoints) for group in down()] == [1]
        Subscription.objects.filter(pk=first.pk).update(status="INACTIVE")
        assert down() == []

    @pytest.mark.parametrize(
        ("other", "is_stopped"),
        [
            ({}, False),
            ({"status": "SHADOW"}, True),
            ({"status": "HELD"}, True),
            ({"cancellation_id": 1}, True),
        ],
    )
    def test_the_overview_lists_exactly_the_groups_that_stand_stopped(
        self, other: dict[str, Any], is_stopped: bool
    ) -> None:
        jobs = QueueJobs(2)
        first, second = jobs.endpoints
        jobs.publish(first)
        Subscription.objects.filter(pk=second.pk).update(**({"name": second.name} | other))
        (standing,) = standing_of_groups(jobs.event_type.pk).values()
        assert standing.state == (State.STOPPED if is_stopped else State.DOWN)
        assert [len(group.endpoints) for group in down()] == [1] * is_stopped

    def test_groups_differ_by_header_string_and_filter(self) -> None:
        jobs = QueueJobs(1)
        other = factories.subscription(event_type=jobs.event_type, header_filter_string="proj1")
        jobs.publish(*jobs.endpoints)
        assert [group.condition for group in down()] == [""]
        row = factories.delivery(subscription=other, lane=Lane.objects.get(kind="QUEUE", number=3))
        factories.endpoint_down(row)
        assert [group.condition for group in down()] == ["", "FILTER_STRING = proj1"]

    def test_an_endpoint_with_a_stopped_url_takes_no_message(self) -> None:
        jobs = QueueJobs(1)
        frozen = factories.subscription(
            event_type=jobs.event_type,
            policy=factories.policy(breaks_circuit=True),
            endpoint="https://frozen.example/",
        )
        jobs.publish(*jobs.endpoints)
        assert down() == []
        url = UrlHealth.objects.create(
            url="https://frozen.example/", state="FROZEN", failures_in_row=51
        )
        (group,) = down()
        reasons = {endpoint.subscription: endpoint.reason for endpoint in group.endpoints}
        assert reasons[str(frozen)] == "51 attempts at its URL failed in a row"
        url.delete()
        assert down() == []

    def test_a_group_without_waiting_messages_is_not_shown(self) -> None:
        jobs = QueueJobs(1)
        jobs.publish(*jobs.endpoints)
        factories.settle(Delivery.objects.get(), Status.EXPIRED)
        assert down() == []

    def test_a_topics_endpoint_is_no_queues(self) -> None:
        factories.endpoint_down(factories.delivery(attempts=1, skipped=True))
        assert down() == []

    def test_waiting_is_counted_up_to_a_limit(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(queue_groups, "WAITING_LIMIT", 2)
        jobs = QueueJobs(1)
        jobs.publish(*jobs.endpoints)
        for _ in range(3):
            jobs.publish()
        assert str(down()[0].waiting) == "2+"

    def test_the_overview_names_the_endpoints_and_why(self, ann: Client) -> None:
        assert "Stopped queue groups" not in ann.get(INDEX).text
        jobs = QueueJobs(2)
        jobs.publish(*jobs.endpoints)
        page = ann.get(INDEX).text
        assert "Stopped queue groups" in page
        for endpoint in jobs.endpoints:
            assert str(endpoint) in page
        assert "503: busy" in page


class TestGroupsOfAnEventType:
    def test_the_page_lists_groups_with_endpoints_and_waiting_messages(self, ann: Client) -> None:
        jobs = QueueJobs(2, filter="$$->'Body'->>'size' = 'large'")
        factories.subscription(
            event_type=jobs.event_type, filter="$$->’Body’->>’size’=’large’", status="INACTIVE"
        )
        factories.subscription(event_type=jobs.event_type, header_filter_string="proj1")
        jobs.publish()
        first, second = queue_groups.groups_of_event_type(jobs.event_type)
        assert (first.condition, first.active, first.inactive, str(first.standing.waiting)) == (
            "$$->'Body'->>'size' = 'large'",
            2,
            1,
            "1",
        )
        assert (second.condition, second.active, second.inactive) == ("FILTER_STRING = proj1", 1, 0)
        page = ann.get(f"/admin/subscriptions/eventtype/{jobs.event_type.pk}/change/").text
        assert "Groups: each message goes to one endpoint" in page
        assert "2 ACTIVE, 1 not ACTIVE" in page
        assert "FILTER_STRING = proj1" in page

    def test_a_topic_has_no_groups(self, ann: Client) -> None:
        subscription = factories.subscription()
        page = ann.get(f"/admin/subscriptions/eventtype/{subscription.event_type_id}/change/").text
        assert "Groups: each message" not in page

    def test_the_page_of_a_subscription_counts_the_members_of_its_group(self, ann: Client) -> None:
        jobs = QueueJobs(3)
        alone = factories.subscription(event_type=jobs.event_type, header_filter_string="proj1")
        of_topic = factories.subscription()
        page = "/admin/subscriptions/subscription/{}/"
        assert "one of 3 endpoints of its group" in ann.get(page.format(jobs.endpoints[0].pk)).text
        assert "the only endpoint of its group" in ann.get(page.format(alone.pk)).text
        assert "of its group" not in ann.get(page.format(of_topic.pk)).text


def retried(due_at: datetime, *, subscription: Subscription | None = None) -> Delivery:
    lane = Lane.objects.get(kind="RETRY")
    return factories.delivery(
        subscription=subscription, lane=lane, attempts=1, next_attempt_at=due_at
    )


class TestRetryLane:
    def test_shows_waiting_and_due_deliveries_and_the_next_time(self) -> None:
        now = timezone.now()
        first = retried(now - timedelta(seconds=5))
        in_four_minutes = now + timedelta(minutes=4)
        retried(in_four_minutes, subscription=first.subscription)
        retried(now + timedelta(hours=1))
        factories.delivery()
        shown = retry_lane.read_retry_lane()
        counts = [str(shown.retries.waiting), str(shown.retries.due), str(shown.held)]
        assert counts == ["3", "1", "0"]
        assert (shown.retries.next_at, shown.subscriptions) == (in_four_minutes, 2)
        of_first = retry_lane.retries_of_subscription(first.subscription_id)
        assert (str(of_first.waiting), str(of_first.due)) == ("2", "1")
        assert of_first.next_at == in_four_minutes

    def test_held_deliveries_are_not_due(self) -> None:
        past = timezone.now() - timedelta(seconds=5)
        inactive = factories.subscription(status="INACTIVE")
        frozen = factories.subscription(
            policy=factories.policy("workfront-48h"), endpoint="https://frozen.example/"
        )
        UrlHealth.objects.create(url="https://frozen.example/", state="FROZEN")
        for subscription in (inactive, frozen):
            retried(past, subscription=subscription)
        shown = retry_lane.read_retry_lane()
        assert (str(shown.retries.waiting), str(shown.retries.due), str(shown.held)) == (
            "2",
            "0",
            "2",
        )
        assert (shown.disabled_urls, shown.frozen_urls) == (0, 1)

    def test_the_overview_shows_it_while_deliveries_wait_or_a_url_is_stopped(
        self, ann: Client
    ) -> None:
        assert "Retry lane" not in ann.get(INDEX).text
        UrlHealth.objects.create(url="https://frozen.example/", state="FROZEN")
        assert "1 FROZEN" in ann.get(INDEX).text
        UrlHealth.objects.all().delete()
        retried(timezone.now())
        assert "Retry lane" in ann.get(INDEX).text

    def test_a_subscription_shows_its_retried_deliveries(self, ann: Client) -> None:
        delivery = retried(timezone.now() + timedelta(minutes=4))
        page = ann.get(f"/admin/subscriptions/subscription/{delivery.subscription_id}/").text
        assert "1 in the retry lane" in page

    def test_a_delivery_shows_its_lane_and_next_attempt(self, ann: Client) -> None:
        subscription = factories.subscription(policy=factories.policy("workfront-2017"))
        delivery = retried(timezone.now() + timedelta(minutes=4), subscription=subscription)
        page = ann.get(f"/admin/delivery/delivery/{delivery.pk}/change/").text
        assert "in the retry lane" in page
        assert "1 of 13" in page
        assert (
            "attempt 2 of 13"
            in ann.get(f"/admin/delivery/message/{delivery.message_id}/change/").text
        )
        listed = ann.get("/admin/delivery/delivery/").text
        assert "in the retry lane" in listed
        assert "next try" in listed


def test_the_in_doubt_tile_links_to_its_deliveries(ann: Client) -> None:
    factories.delivery(Status.IN_DOUBT)
    assert 'href="/admin/delivery/delivery/?status=IN_DOUBT"' in ann.get(INDEX).text
