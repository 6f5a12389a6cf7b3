"""Making a subscription or a subscriber HELD, INACTIVE and ACTIVE again; and holding all sending.

INACTIVE stops matching at once (messages published meanwhile are not kept) and sending within two
seconds, even in the middle of a run: PENDING deliveries wait, and those of other subscriptions are
sent. HELD stops only sending: messages match and are stored. Meanwhile a mailbox hands nothing out;
messages handed out before can still be acknowledged. SHADOW, of a subscription, stops sending too:
messages match and are recorded as settled (`delivery.publishing.shadow`), earlier messages wait. A
subscription keeps the status while the subscriber has another.

Each function locks the row and then checks it, so if two people act at once, the second sees the
first change. Inturn itself never holds anything; it ends a hold with an end
(`delivery.support.releases`).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from django.db import transaction
from django.utils import timezone

from delivery.lifecycle import journal, notifier
from delivery.models import JournalKind, Resubmission
from delivery.support import bulk_jobs, held_objects
from delivery.support.held_objects import Held
from subscriptions import changes
from subscriptions.models import Installation, Subscriber, Subscription, SubscriptionStatus
from subscriptions.values.times import time_text

Backlog = Literal["deliver", "cancel"]
ACTIVE, HELD, INACTIVE = (
    SubscriptionStatus.ACTIVE,
    SubscriptionStatus.HELD,
    SubscriptionStatus.INACTIVE,
)
SHADOW = SubscriptionStatus.SHADOW


@dataclass(frozen=True, slots=True)
class Release:
    """The end of a hold: a time, or None until a person ends it; and the rate afterwards.

    `catch_up_rate` is deliveries per second of each subscriber; None sends them at once.
    """

    until: datetime | None = None
    catch_up_rate: float | None = None


def deactivate_owner(owner: Subscription | Subscriber, *, actor: str) -> bool:
    """Make it INACTIVE; False if it was already."""
    with transaction.atomic():
        if not _change(owner, INACTIVE, actor=actor):
            return False
        held = (
            "its deliveries are"
            if isinstance(owner, Subscription)
            else "the deliveries of its subscriptions are"
        )
        text = (
            f"{owner} was made INACTIVE: "
            f"{held} held, and messages published meanwhile are not kept for it."
        )
        _record(owner, JournalKind.DEACTIVATED, text, actor=actor)
    return True


def shadow_subscription(subscription: Subscription, *, actor: str) -> bool:
    """Make it SHADOW; False if it was already."""
    with transaction.atomic():
        if not _change(subscription, SHADOW, actor=actor):
            return False
        text = (
            f"{subscription} was made SHADOW: messages match and are recorded, "
            "and nothing of it is sent; its deliveries are held."
        )
        _record(subscription, JournalKind.SHADOW, text, actor=actor)
    return True


def hold_owner(owner: Held, *, actor: str, release: Release | None = None) -> bool:
    """Make it HELD; False if nothing changes.

    Without `release` a new hold lasts until a person ends it, and an existing hold keeps the end.
    """
    with transaction.atomic():
        if not _change(owner, HELD, actor=actor, release=release):
            return False
        record_hold(owner, actor=actor)
    return True


def record_hold(owner: Held, *, actor: str) -> None:
    """Write the journal entry of a hold, why deliveries wait; also for a new HELD object."""
    subject = "all sending" if isinstance(owner, Installation) else str(owner)
    verb = "was" if isinstance(owner, Installation) else "was made"
    until = f" until {time_text(owner.held_until)}" if owner.held_until else ""
    text = (
        f"{subject} {verb} HELD{until}: messages are stored, "
        "and nothing of it is sent or handed out."
    )
    _record(
        owner,
        JournalKind.HELD,
        f"{text[0].upper()}{text[1:]}" if isinstance(owner, Installation) else text,
        actor=actor,
    )


def activate_owner(
    owner: Held, *, actor: str, backlog: Backlog = "deliver", catch_up_rate: float | None = None
) -> list[Resubmission]:
    """Make it ACTIVE, and deliver the backlog in order or cancel it first; return the bulk jobs.

    There are no jobs if there is nothing to cancel. Messages published from now on match, and are
    sent when their subscription's job has ended. The backlog is sent at `catch_up_rate`, or else at
    the rate set with the hold. For a subscriber, only the backlogs of the ACTIVE subscriptions are
    cancelled; subscriptions with a hold of their own keep it.
    """
    with transaction.atomic():
        before = _locked(owner)
        if _status(before) == ACTIVE:
            return []
        rate = before.catch_up_rate if catch_up_rate is None else catch_up_rate
        jobs = list(_cancelling(owner, actor=actor)) if backlog == "cancel" else []
        _change(owner, ACTIVE, actor=actor)
        held_objects.set_catch_up_rate(owner, rate=None if jobs else rate)
        _record(owner, JournalKind.ACTIVATED, _activated(owner, jobs, rate), actor=actor)
        held_objects.notify_senders(owner)
    return jobs


def restore_status(owner: Subscription | Subscriber, *, made: str, to: str, actor: str) -> bool:
    """Undo a change to the status `made`: set the status to `to`, unless it has changed since."""
    with transaction.atomic():
        if _status(_locked(owner)) != made:
            return False
        match to:
            case SubscriptionStatus.ACTIVE:
                activate_owner(owner, actor=actor)
            case SubscriptionStatus.HELD:
                hold_owner(owner, actor=actor)
            case SubscriptionStatus.SHADOW if isinstance(owner, Subscription):
                shadow_subscription(owner, actor=actor)
            case _:
                deactivate_owner(owner, actor=actor)
    return True


def _cancelling(owner: Held, *, actor: str) -> Iterator[Resubmission]:
    subscriptions = (
        Subscription.objects.filter(status=ACTIVE, subscriber=owner)
        if isinstance(owner, Subscriber)
        else [owner]
    )
    for subscription in subscriptions:
        assert isinstance(subscription, Subscription)
        job = bulk_jobs.start_backlog(subscription, actor=actor)
        if job is not None:
            yield job


def _activated(owner: Held, jobs: list[Resubmission], rate: float | None) -> str:
    name = (
        "All sending was released"
        if isinstance(owner, Installation)
        else f"{owner} was made ACTIVE"
    )
    if jobs:
        return (
            f"{name}: held deliveries are cancelled "
            f"({', '.join(map(str, jobs[:10]))}{' and more' if jobs[10:] else ''})."
        )
    pace = (
        f", {rate:g} a second" + (" of each subscriber" if isinstance(owner, Installation) else "")
        if rate
        else ""
    )
    return f"{name}: held deliveries are sent{pace}."


def _locked(owner: Held) -> Any:
    return (
        type(owner)._default_manager.select_for_update(of=("self",), no_key=True).get(pk=owner.pk)
    )


def _status(row: Any) -> str:
    return str(row.sending if isinstance(row, Installation) else row.status)


def _change(owner: Held, status: str, *, actor: str, release: Release | None = None) -> bool:
    """Set the row's status and release; False if nothing changes.

    Without `release` a HELD row keeps the present release.
    """
    row = _locked(owner)
    if status == _status(row) and (release is None or status != HELD):
        return False
    column = "sending" if isinstance(owner, Installation) else "status"
    wanted = release or Release()
    after = {column: str(status), "held_until": wanted.until, "catch_up_rate": wanted.catch_up_rate}
    before = {name: getattr(row, name) for name in after}
    if before == after:
        return False
    type(owner)._default_manager.filter(pk=owner.pk).update(**after, updated_at=timezone.now())
    for name, value in after.items():
        setattr(owner, name, value)
    changes.record_change(
        actor=actor,
        action="changed",
        instance=owner,
        before=_logged_values(before),
        after=_logged_values(after),
    )
    return True


def _logged_values(values: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: value.isoformat() if isinstance(value, datetime) else value
        for name, value in values.items()
    }


def _record(owner: Held, kind: JournalKind, text: str, *, actor: str) -> None:
    journal.record_entry(kind, text, actor=actor, **held_objects.journal_subject(owner))
    notifier.notify_of_change()
