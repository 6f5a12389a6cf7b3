"""Making a subscription INACTIVE, and ACTIVE again.

INACTIVE stops matching at once (messages published meanwhile are not kept for it) and sending within two seconds, also in the middle
of a run: what is PENDING is held, and the subscriber's other subscriptions flow. A mailbox hands nothing of it out any
more; what was handed out may be acknowledged all the same.
"""

from typing import Literal

from django.db import transaction
from django.utils import timezone

from delivery import journal, lifecycle, wake
from delivery.models import JournalKind, Lane
from subscriptions import changes
from subscriptions.models import Mode, Subscription, SubscriptionStatus

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


def activate(subscription: Subscription, *, backlog: Backlog, actor: str) -> int:
    """Make it ACTIVE, and deliver what was held in order, or cancel that first; return how many were cancelled.

    Cancelling comes first, while nothing of it can be sent.
    """
    with transaction.atomic():
        cancelled = 0
        if backlog == "cancel" and _lock(subscription).status == SubscriptionStatus.INACTIVE:
            cancelled = lifecycle.cancel_backlog(subscription.pk, actor=actor)
        if _set(subscription, SubscriptionStatus.ACTIVE, actor=actor):
            fate = (
                f"{cancelled} held deliveries were cancelled" if cancelled else "what was held is delivered"
            )
            journal.record(
                JournalKind.ACTIVATED,
                f"{subscription} was made ACTIVE: {fate}.",
                actor=actor,
                subscription_id=subscription.pk,
            )
            _wake(subscription)
    return cancelled


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


def _wake(subscription: Subscription) -> None:
    lane_ids = list(Lane.objects.of(subscription).values_list("pk", flat=True))
    wake.changed()
    transaction.on_commit(lambda: wake.lanes(lane_ids))
    if subscription.mode == Mode.PULL:
        transaction.on_commit(lambda: wake.mailboxes([subscription.subscriber_id]))
