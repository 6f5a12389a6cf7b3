"""Holding subscriptions, subscribers and all sending, and the end of holds."""

from datetime import timedelta

import pytest
from django.utils import timezone

from delivery.calls.sync import exchange_message
from delivery.models import Delivery, JournalEntry, JournalKind, Lane, Resubmission
from delivery.publishing.drafts import Draft
from delivery.publishing.publish import publish
from delivery.states import Status
from delivery.support import held_objects, releases, toggle
from delivery.support.toggle import Release
from subscriptions.models import (
    ConfigurationChange,
    Installation,
    Kind,
    Subscriber,
    Subscription,
    SubscriptionStatus,
)
from tests.support import factories

pytestmark = pytest.mark.django_db

HELD, ACTIVE = SubscriptionStatus.HELD, SubscriptionStatus.ACTIVE


@pytest.fixture
def subscription(db: None) -> Subscription:
    return factories.subscription()


def reported() -> list[tuple[str, str, int | None, int | None]]:
    rows = JournalEntry.objects.order_by("id")
    return [(row.kind, row.actor, row.subscription_id, row.lane_id) for row in rows]


def published(subscription: Subscription) -> int:
    draft = Draft(event_type=subscription.event_type, headers={}, body=b"{}")
    (message,) = publish(factories.publisher(), [draft])
    return message.deliveries


def test_each_hold_and_release_is_reported_once_with_actor_and_object(
    subscription: Subscription,
) -> None:
    lane_id = subscription.subscriber.lane.pk
    for owner in (subscription, subscription.subscriber, held_objects.installation()):
        assert toggle.hold_owner(owner, actor="ann")
        assert not toggle.hold_owner(owner, actor="bob")
        toggle.activate_owner(owner, actor="bob")
        toggle.activate_owner(owner, actor="cid")
    about = [(subscription.pk, None), (None, lane_id), (None, None)]
    kinds = [(JournalKind.HELD, "ann"), (JournalKind.ACTIVATED, "bob")]
    assert reported() == [(*kind, *place) for place in about for kind in kinds]
    assert ConfigurationChange.objects.count() == 6


def test_what_is_held_matches_and_what_is_of_an_inactive_subscriber_does_not(
    subscription: Subscription,
) -> None:
    toggle.hold_owner(subscription, actor="ann")
    assert published(subscription) == 1
    toggle.hold_owner(subscription.subscriber, actor="ann")
    assert published(subscription) == 1
    toggle.deactivate_owner(subscription.subscriber, actor="ann")
    assert published(subscription) == 0
    subscription.refresh_from_db()
    assert subscription.status == HELD


class TestEndOfHolds:
    def test_a_hold_whose_time_is_over_is_released_and_others_are_not(
        self, subscription: Subscription
    ) -> None:
        now = timezone.now()
        other = factories.subscriber()
        for owner, seconds in (
            (subscription, -1),
            (subscription.subscriber, -1),
            (held_objects.installation(), -1),
            (other, 60),
        ):
            toggle.hold_owner(
                owner, actor="ann", release=Release(until=now + timedelta(seconds=seconds))
            )
        assert releases.release_due() == 3
        assert releases.release_due() == 0
        subscription.refresh_from_db()
        assert (subscription.status, subscription.held_until) == (ACTIVE, None)
        assert Subscriber.objects.get(pk=other.pk).status == HELD
        assert Installation.objects.get().sending == "ACTIVE"
        assert [row.actor for row in JournalEntry.objects.filter(kind=JournalKind.ACTIVATED)] == [
            ""
        ] * 3

    def test_a_hold_without_a_moment_lasts(self, subscription: Subscription) -> None:
        toggle.hold_owner(subscription, actor="ann")
        assert releases.release_due() == 0

    def test_a_lane_catches_up_until_nothing_waits_that_was_held(
        self, subscription: Subscription
    ) -> None:
        waiting = factories.delivery(subscription=subscription)
        toggle.hold_owner(subscription.subscriber, actor="ann", release=Release(catch_up_rate=5))
        toggle.activate_owner(subscription.subscriber, actor="ann")
        lane = Lane.objects.get(subscriber=subscription.subscriber)
        assert lane.catch_up_rate == 5
        assert releases.end_catching_up() == 0
        factories.settle(waiting, Status.DELIVERED)
        factories.delivery(
            subscription=subscription, message=factories.message(event_type=subscription.event_type)
        )
        lane.catch_up_to = waiting.pk
        lane.save()
        assert releases.end_catching_up() == 1
        lane = Lane.objects.get(pk=lane.pk)
        assert (lane.catch_up_rate, lane.catch_up_to) == (None, None)

    def test_a_release_without_a_rate_ends_one_that_was_begun(
        self, subscription: Subscription
    ) -> None:
        toggle.hold_owner(subscription, actor="ann")
        toggle.activate_owner(subscription, actor="ann", catch_up_rate=2)
        assert Lane.objects.get(subscriber=subscription.subscriber).catch_up_rate == 2
        toggle.hold_owner(subscription, actor="ann")
        toggle.activate_owner(subscription, actor="ann")
        assert Lane.objects.get(subscriber=subscription.subscriber).catch_up_rate is None


def test_a_released_subscriber_has_cancelled_what_its_active_subscriptions_had_waiting(
    subscription: Subscription,
) -> None:
    factories.delivery(subscription=subscription)
    other = factories.subscription(subscriber=subscription.subscriber)
    factories.delivery(subscription=other)
    toggle.hold_owner(other, actor="ann")
    toggle.hold_owner(subscription.subscriber, actor="ann")
    (job,) = toggle.activate_owner(subscription.subscriber, backlog="cancel", actor="ann")
    assert Resubmission.objects.get() == job
    assert job.filter == {"subscription": str(subscription.pk)}


def test_undo_restores_the_status_unless_somebody_else_changed_it(
    subscription: Subscription,
) -> None:
    toggle.hold_owner(subscription, actor="ann")
    toggle.deactivate_owner(subscription, actor="ann")
    assert toggle.restore_status(subscription, made="INACTIVE", to="HELD", actor="ann")
    assert Subscription.objects.get().status == HELD
    assert not toggle.restore_status(subscription, made="INACTIVE", to="ACTIVE", actor="ann")


def test_a_held_subscription_gives_a_sync_message_no_answer() -> None:
    event_type = factories.event_type(kind=Kind.SYNC)
    subscription = factories.subscription(event_type=event_type)
    toggle.hold_owner(subscription.subscriber, actor="ann")
    ended = exchange_message(
        factories.publisher(), Draft(event_type=event_type, headers={}, body=b"{}")
    )
    assert ended.is_held
    assert ended.called is not None
    assert ended.called.answer is None
    assert not ended.counts_as_unmatched
    assert Delivery.objects.get().status == Status.FAILED
    Subscription.objects.update(lets_pass_on_timeout=True)
    assert exchange_message(
        factories.publisher(), Draft(event_type=event_type, headers={}, body=b"{}")
    ).counts_as_unmatched
