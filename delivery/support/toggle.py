"""Making a subscription INACTIVE, and ACTIVE again.

INACTIVE stops matching at once (messages published meanwhile are not kept for it) and sending within two seconds, also in the middle
of a run: what is PENDING is held, and the subscriber's other subscriptions flow. A mailbox hands nothing of it out any
more; what was handed out may be acknowledged all the same.
"""

from typing import Literal

from django.db import transaction
from django.utils import timezone

from delivery.lifecycle import journal, wake
from delivery.models import JournalKind, Resubmission
from delivery.support import bulk_jobs
from delivery.support.backlog import wake_senders
from subscriptions import changes
from subscriptions.models import Subscription, SubscriptionStatus

Backlog = Literal["deliver", "cancel"]


def deactivate(subscription: Subscription, *, actor: str) -> bool:
    """Make it INACTIVE; False if it was already."""
    with transaction.atomic():
        if not _set(subscription, SubscriptionStatus.INACTIVE, actor=actor):
            return False
        text = f"{subscription} was made INACTIVE: its deliveries are held, and messages published meanwhile are not kept for it."
        journal.record(JournalKind.DEACTIVATED, text, actor=actor, subscription_id=subscription.pk)
        wake.changed()
    return True


def activate(subscription: Subscription, *, backlog: Backlog, actor: str) -> Resubmission | None:
    """Make it ACTIVE, and deliver what was held in order, or have that cancelled first; return the job that does so.

    None if there is nothing to cancel. What is published from now on matches it, and is sent when the job has ended.
    """
    with transaction.atomic():
        job = None
        if backlog == "cancel" and _lock(subscription).status == SubscriptionStatus.INACTIVE:
            job = bulk_jobs.start_backlog(subscription, actor=actor)
        if _set(subscription, SubscriptionStatus.ACTIVE, actor=actor):
            fate = "what was held is delivered" if job is None else f"what was held is cancelled ({job})"
            journal.record(
                JournalKind.ACTIVATED,
                f"{subscription} was made ACTIVE: {fate}.",
                actor=actor,
                subscription_id=subscription.pk,
            )
            wake_senders(subscription)
    return job


def _lock(subscription: Subscription) -> Subscription:
    return Subscription.objects.select_for_update(of=("self",), no_key=True).get(pk=subscription.pk)


def _set(subscription: Subscription, status: SubscriptionStatus, *, actor: str) -> bool:
    before = subscription.status
    changed = (
        Subscription.objects.filter(pk=subscription.pk)
        .exclude(status=status)
        .update(status=status, updated_at=timezone.now())
    )
    subscription.status = status
    if changed:
        changes.record(
            actor=actor,
            action="changed",
            instance=subscription,
            before={"status": SubscriptionStatus(before).value},
            after={"status": status.value},
        )
    return bool(changed)
