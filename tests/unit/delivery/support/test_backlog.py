"""A backlog is cancelled by a job.

Until it ends nothing of the subscription is sent; messages that came meanwhile are.
"""

import pytest
from django.db import transaction
from django.utils import timezone

from delivery.database.queries import rows
from delivery.models import Delivery, Lane, Resubmission, ResubmissionState, Status
from delivery.support import bulk_jobs, resubmit, toggle
from delivery.support.bulk_jobs import BATCH, BacklogError, advance_job
from subscriptions.models import Kind, Subscription, SubscriptionStatus
from tests.races.transactions import unfinished
from tests.support import factories
from tests.unit.delivery.api.client import caller, created, refused
from tests.unit.delivery.mailbox.box import box
from tests.unit.delivery.senders.read_statements import run_parameters
from tests.unit.delivery.support.test_bulk_jobs_resubmissions import finish

ACTOR = "ann"


def held(count: int) -> list[Delivery]:
    """Create deliveries that an INACTIVE subscription holds."""
    subscription = factories.subscription()
    message = factories.message(event_type=subscription.event_type)
    made = [factories.delivery(subscription=subscription, message=message) for _ in range(count)]
    toggle.deactivate_owner(subscription, actor=ACTOR)
    return made


def cancelling(subscription: Subscription) -> Resubmission:
    (job,) = toggle.activate_owner(subscription, backlog="cancel", actor=ACTOR)
    assert job is not None
    return job


def is_sent_to(subscription: Subscription) -> bool:
    """Return whether a sender may read any delivery of it."""
    return bool(rows("read_runs", run_parameters(subscription.subscriber.lane.pk)))


@pytest.mark.django_db
class TestJob:
    def test_the_job_cancels_batches_that_senders_can_wait_for(self) -> None:
        first = held(1)[0]
        Delivery.objects.bulk_create(
            Delivery(
                pk=factories.new_delivery_id(first.message),
                message=first.message,
                subscription=first.subscription,
                lane=first.lane,
            )
            for _ in range(2 * BATCH)
        )
        job = cancelling(first.subscription)
        assert Delivery.objects.pending().count() == job.count == 2 * BATCH + 1
        assert [advance_job(timezone.now()) for _ in range(3)] == [BATCH, BATCH, 1]
        assert set(Delivery.objects.values_list("status", "reason")) == {
            (Status.CANCELLED, f"cancelled by ann (cancellation {job.pk})")
        }

    def test_nothing_is_sent_before_the_job_has_ended(self) -> None:
        old = held(2)
        subscription = old[0].subscription
        job = cancelling(subscription)
        assert subscription.status == SubscriptionStatus.ACTIVE
        fresh = factories.delivery(subscription=subscription)
        assert not is_sent_to(subscription)
        advance_job(timezone.now())
        assert not is_sent_to(subscription)
        finish(job)
        assert is_sent_to(subscription)
        assert dict(Delivery.objects.values_list("pk", "status")) == {
            **dict.fromkeys([row.pk for row in old], Status.CANCELLED),
            fresh.pk: Status.PENDING,
        }
        assert (job.done, job.changed) == (2, 2)

    @pytest.mark.parametrize("kind", ["retry", "skipped", "queue"])
    def test_the_job_finds_waiting_deliveries_in_every_lane(self, kind: str) -> None:
        event_type = factories.event_type(kind=Kind.QUEUE if kind == "queue" else Kind.TOPIC)
        subscription = factories.subscription(event_type=event_type)
        lanes = {
            "retry": Lane.objects.get(kind="RETRY"),
            "skipped": subscription.subscriber.lane,
            "queue": Lane.objects.filter(kind="QUEUE")[3],
        }
        row = factories.delivery(
            subscription=subscription,
            lane=lanes[kind],
            skipped=kind == "skipped",
            attempts=1,
            queue_group=0 if kind == "queue" else None,
        )
        toggle.deactivate_owner(subscription, actor=ACTOR)
        finish(cancelling(subscription))
        row.refresh_from_db()
        assert row.status == Status.CANCELLED

    def test_without_held_deliveries_there_is_no_job(self) -> None:
        subscription = factories.subscription()
        factories.delivery(Status.DELIVERED, subscription=subscription)
        toggle.deactivate_owner(subscription, actor=ACTOR)
        assert not toggle.activate_owner(subscription, backlog="cancel", actor=ACTOR)
        assert subscription.cancellation_id is None

    def test_deliveries_resubmitted_behind_the_job_stay(self) -> None:
        first, *_ = held(2)
        job = cancelling(first.subscription)
        advance_job(timezone.now())
        resubmit.resubmit_delivery(first.pk, actor=ACTOR)
        finish(job)
        first.refresh_from_db()
        assert first.status == Status.PENDING

    def test_a_subscription_toggled_meanwhile_still_waits(self) -> None:
        (row,) = held(1)
        subscription = row.subscription
        job = cancelling(subscription)
        toggle.deactivate_owner(subscription, actor=ACTOR)
        assert not toggle.activate_owner(subscription, backlog="deliver", actor=ACTOR)
        fresh = factories.delivery(subscription=subscription)
        assert not is_sent_to(subscription)
        toggle.deactivate_owner(subscription, actor=ACTOR)
        again = cancelling(subscription)
        finish(job)
        assert not is_sent_to(subscription)
        finish(again)
        fresh.refresh_from_db()
        assert fresh.status == Status.CANCELLED
        subscription.refresh_from_db()
        assert subscription.cancellation_id is None

    def test_the_job_cannot_be_stopped(self) -> None:
        (row,) = held(1)
        job = cancelling(row.subscription)
        with pytest.raises(BacklogError):
            bulk_jobs.cancel_job(job, actor=ACTOR, now=timezone.now())
        refused(caller().post(f"cancellations/{job.pk}/cancel"), 409, "backlog")
        assert Resubmission.objects.get().state == ResubmissionState.RUNNING

    def test_a_mailbox_hands_out_nothing_before_the_job_has_ended(self) -> None:
        mailbox = box()
        mailbox.put(2)
        toggle.deactivate_owner(mailbox.subscription, actor=ACTOR)
        job = cancelling(mailbox.subscription)
        (fresh,) = mailbox.put()
        assert mailbox.next(10) == []
        assert mailbox.status()["available"] == 0
        finish(job)
        assert [message["id"] for message in mailbox.next(10)] == [fresh.message.public_id]

    def test_answer_and_subscription_name_the_job(self) -> None:
        manager = caller()
        (row,) = held(1)
        address = f"subscriptions/{row.subscription_id}"
        answer = manager.patch(address, {"status": "ACTIVE", "backlog": "cancel"})
        assert (answer.status, answer.body["status"]) == (200, "ACTIVE")
        progress = manager.get(f"cancellations/{answer.body['cancellation']}")
        assert (progress.body["state"], progress.body["count"], progress.body["done"]) == (
            "RUNNING",
            1,
            0,
        )
        finish(Resubmission.objects.get())
        assert manager.get(address).body["cancellation"] is None
        assert created(manager.post("event-types", {"name": "Other"}))


@pytest.mark.django_db(transaction=True)
def test_deliveries_committed_after_the_decision_are_cancelled_too() -> None:
    (row,) = held(1)

    def publishing() -> None:
        factories.delivery(subscription=row.subscription, message=row.message)

    with unfinished(publishing):
        job = cancelling(row.subscription)
        later = factories.delivery(subscription=row.subscription)
        with transaction.atomic():
            advance_job(timezone.now())
    with transaction.atomic():
        finish(job)
    assert (job.done, job.changed) == (2, 2)
    assert [row.pk for row in Delivery.objects.pending()] == [later.pk]
