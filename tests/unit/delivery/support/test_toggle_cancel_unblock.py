"""Actions of administrators and support: toggle, cancel, retry, skip."""

from typing import Any

import pytest
from django.utils import timezone

from delivery.lifecycle import transitions
from delivery.models import Delivery, JournalEntry, JournalKind, Lane, LaneState, Status
from delivery.states import OPEN
from delivery.support import toggle, unblock
from subscriptions.models import ConfigurationChange, Subscription, SubscriptionStatus
from tests.support import factories
from tests.unit.delivery.support.test_bulk_jobs_resubmissions import finish

ACTOR = "ann"


def blocked_lane(**fields: Any) -> tuple[Lane, Delivery]:
    head = factories.delivery(attempts=1, reason="503")
    assert head.lane is not None
    Lane.objects.filter(pk=head.lane.pk).update(
        state=LaneState.BLOCKED,
        delivery_id=head.pk,
        failures=6,
        next_try_at=timezone.now().replace(year=2099),
        **fields,
    )
    return Lane.objects.get(pk=head.lane.pk), head


class TestToggle:
    @pytest.fixture
    def subscription(self, db: None) -> Subscription:
        return factories.subscription()

    def test_an_inactive_subscription_holds_its_pending_deliveries(
        self, subscription: Subscription
    ) -> None:
        held = factories.delivery(subscription=subscription)
        assert toggle.deactivate_owner(subscription, actor=ACTOR)
        subscription.refresh_from_db()
        held.refresh_from_db()
        assert (subscription.status, held.status) == (SubscriptionStatus.INACTIVE, Status.PENDING)
        entry = JournalEntry.objects.get()
        assert (entry.kind, entry.actor) == (JournalKind.DEACTIVATED, ACTOR)
        change = ConfigurationChange.objects.get()
        assert (change.before, change.after) == ({"status": "ACTIVE"}, {"status": "INACTIVE"})

    def test_making_it_inactive_twice_is_one_change(self, subscription: Subscription) -> None:
        toggle.deactivate_owner(subscription, actor=ACTOR)
        assert not toggle.deactivate_owner(subscription, actor=ACTOR)
        assert JournalEntry.objects.count() == ConfigurationChange.objects.count() == 1

    def test_active_again_keeps_the_backlog_to_deliver(self, subscription: Subscription) -> None:
        held = factories.delivery(subscription=subscription)
        toggle.deactivate_owner(subscription, actor=ACTOR)
        assert not toggle.activate_owner(subscription, backlog="deliver", actor=ACTOR)
        held.refresh_from_db()
        assert held.status == Status.PENDING

    def test_active_again_can_cancel_the_backlog_of_this_subscription_only(
        self, subscription: Subscription
    ) -> None:
        held = [factories.delivery(subscription=subscription) for _ in range(3)]
        other = factories.delivery(
            subscription=factories.subscription(subscriber=subscription.subscriber)
        )
        toggle.deactivate_owner(subscription, actor=ACTOR)
        (job,) = toggle.activate_owner(subscription, backlog="cancel", actor=ACTOR)
        assert job is not None
        assert finish(job).changed == 3
        assert {row.status for row in Delivery.objects.filter(pk__in=[row.pk for row in held])} == {
            Status.CANCELLED
        }
        other.refresh_from_db()
        assert other.status == Status.PENDING

    def test_cancelling_the_backlog_of_an_active_subscription_does_nothing(
        self, subscription: Subscription
    ) -> None:
        factories.delivery(subscription=subscription)
        assert not toggle.activate_owner(subscription, backlog="cancel", actor=ACTOR)
        assert Delivery.objects.get().status == Status.PENDING


class TestCancel:
    def test_a_pending_delivery_is_cancelled_with_the_persons_name(self, db: None) -> None:
        row = factories.delivery()
        assert transitions.cancel_deliveries([row.pk], actor=ACTOR) == 1
        row.refresh_from_db()
        assert (row.status, row.reason) == (Status.CANCELLED, "cancelled by ann")
        assert row.settled_at is not None

    @pytest.mark.parametrize("status", sorted(set(Status) - set(OPEN)))
    def test_a_settled_delivery_is_unchanged(self, db: None, status: Status) -> None:
        row = factories.delivery(status)
        assert transitions.cancel_deliveries([row.pk], actor=ACTOR) == 0
        row.refresh_from_db()
        assert row.status == status
        assert not JournalEntry.objects.exists()


class TestUnblock:
    def test_retry_ends_the_pause(self, db: None) -> None:
        lane, head = blocked_lane()
        unblock.retry_head(lane, actor=ACTOR)
        lane.refresh_from_db()
        assert lane.next_try_at is not None
        assert lane.next_try_at <= timezone.now()
        assert JournalEntry.objects.get().delivery_id == head.pk

    def test_skip_cancels_the_head_and_ends_the_pause(self, db: None) -> None:
        lane, head = blocked_lane()
        assert unblock.skip_delivery(lane, actor=ACTOR) == head.pk
        head.refresh_from_db()
        lane.refresh_from_db()
        assert head.status == Status.CANCELLED
        assert lane.next_try_at is not None
        assert lane.next_try_at <= timezone.now()

    def test_only_the_head_that_the_person_saw_is_skipped(self, db: None) -> None:
        lane, head = blocked_lane()
        with pytest.raises(unblock.NotBlockedError):
            unblock.skip_delivery(lane, actor=ACTOR, expected=head.pk + 1)
        assert unblock.skip_delivery(lane, actor=ACTOR, expected=head.pk) == head.pk

    def test_a_flowing_lane_has_nothing_to_retry_or_skip(self, db: None) -> None:
        lane = factories.subscriber().lane
        for act in (unblock.retry_head, unblock.skip_delivery):
            with pytest.raises(unblock.NotBlockedError):
                act(lane, actor=ACTOR)

    def test_a_head_settled_meanwhile_is_not_skipped(self, db: None) -> None:
        lane, head = blocked_lane()
        Delivery.objects.filter(pk=head.pk).update(
            status=Status.DELIVERED, settled_at=timezone.now()
        )
        with pytest.raises(unblock.NotBlockedError):
            unblock.skip_delivery(lane, actor=ACTOR)
        assert not JournalEntry.objects.exists()

    def test_a_concurrent_lane_continues_although_its_head_is_settled(self, db: None) -> None:
        lane, head = blocked_lane(run_is_concurrent=True)
        Delivery.objects.filter(pk=head.pk).update(status=Status.FAILED, settled_at=timezone.now())
        assert unblock.skip_delivery(lane, actor=ACTOR) is None
        lane.refresh_from_db()
        assert lane.next_try_at is not None
        assert lane.next_try_at <= timezone.now()
