"""Every change of a delivery's status that a person makes.

Those that a sender makes are in `delivery/senders/sql/settle.sql`, those of a mailbox's client in `fetch.sql` and `end_fetches.sql`. Each is a conditional
UPDATE, and only its row count tells whether it happened.
"""

from collections.abc import Collection, Mapping
from typing import Any

import orjson
from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import F

from delivery.database import queries
from delivery.lifecycle import journal, wake
from delivery.models import Delivery, JournalKind, Status
from delivery.models.moment import ArchiveClock

# What a person may have sent again. A success that is recorded is none of it: neither the delivery's own, nor its
# sibling's (REDUNDANT), nor that of the same fact in another message (DUPLICATE).
RESUBMITTABLE = (
    Status.REJECTED,
    Status.UNSUPPORTED,
    Status.FAILED,
    Status.IN_DOUBT,
    Status.EXPIRED,
    Status.CANCELLED,
)
CANCELLABLE = (Status.PENDING, Status.IN_FLIGHT, Status.IN_DOUBT)
# A person ends one settlement by another: the archive has both.
_SETTLED_ANEW: Mapping[str, Any] = {"settled_at": ArchiveClock(), "settled_before": F("settled_before") + 1}


def cancel(delivery_ids: Collection[int], *, actor: str, reason: str = "cancelled") -> int:
    """Settle open deliveries as CANCELLED and return how many were.

    One that is being sent at this moment is cancelled too: its attempt is recorded, and it is not
    sent again. What a sender has read and not yet sent it drops as soon as it hears of it. Who has fetched one
    from a mailbox hears of it when acknowledging.
    """
    with transaction.atomic():
        cancelled = _cancel(delivery_ids, reason=f"{reason} by {actor}")
        if cancelled:
            _tell_senders(delivery_ids)
            text = f"{cancelled} deliveries were {reason}."
            only = next(iter(delivery_ids)) if len(delivery_ids) == 1 else None
            journal.record(JournalKind.CANCELLED, text, actor=actor, delivery_id=only)
    return cancelled


def cancel_some(delivery_ids: Collection[int], *, reason: str, are_read: bool = True) -> int:
    """Settle what is CANCELLABLE of a bulk job's batch as CANCELLED and return how many; the journal is its caller's.

    Call it after `failures.tell_of`, which locks them in one order and tells what is in doubt. Unless `are_read`
    senders need not be told, for they hold none of them.
    """
    with transaction.atomic():
        cancelled = _cancel(delivery_ids, reason=reason)
        doubtful = Delivery.objects.filter(pk__in=delivery_ids, status=Status.IN_DOUBT)
        cancelled += doubtful.update(status=Status.CANCELLED, **_SETTLED_ANEW, reason=f"in doubt, {reason}")
        if cancelled and are_read:
            _tell_senders(delivery_ids)
    return cancelled


def reopen(delivery_ids: Collection[int], *, reason: str) -> list[int]:
    """Make settled deliveries PENDING again, each at its old place with a fresh budget, and return those that now are.

    Only what is RESUBMITTABLE, in a lane or a mailbox, and of a QUEUE group that has no DELIVERED. The senders are told that
    there is work, but no pause ends for it. What is in a mailbox has its whole time there again.
    """
    if not delivery_ids:
        return []
    ids = {"delivery": list(delivery_ids)}
    with transaction.atomic():
        queries.execute("lock_groups", ids)
        chosen = {
            **ids,
            "from": [status.value for status in RESUBMITTABLE],
            "reason": reason,
            "mailbox_days": settings.ENVIRONMENT.mailbox_days,
        }
        rows = queries.rows("reopen", chosen)
        lane_ids = {lane_id for _, lane_id, _ in rows if lane_id is not None}
        mailboxes = {subscriber_id for _, lane_id, subscriber_id in rows if lane_id is None}
        transaction.on_commit(lambda: wake.lanes(lane_ids))
        transaction.on_commit(lambda: wake.mailboxes(mailboxes))
    return sorted(id for id, *_ in rows)


def mark_delivered(delivery_id: int, *, actor: str) -> bool:
    """Settle what is IN_DOUBT as DELIVERED, and what is PENDING of its QUEUE group as REDUNDANT; False if it was not so.

    Not so is it, too, when another of its group was delivered meanwhile.
    """
    try:
        with transaction.atomic():
            queries.execute("lock_groups", {"delivery": [delivery_id]})
            if not _decide(delivery_id, Status.DELIVERED, actor=actor, words="marked as delivered"):
                return False
            _make_siblings_redundant(delivery_id)
    except IntegrityError:
        return False
    return True


def cancel_doubt(delivery_id: int, *, actor: str) -> bool:
    """Settle what is IN_DOUBT as CANCELLED; False if it was not so. The siblings of its QUEUE group go on."""
    with transaction.atomic():
        return _decide(delivery_id, Status.CANCELLED, actor=actor, words="cancelled")


def _decide(delivery_id: int, status: Status, *, actor: str, words: str) -> bool:
    decided = Delivery.objects.filter(pk=delivery_id, status=Status.IN_DOUBT).update(
        status=status, **_SETTLED_ANEW, reason=f"in doubt, {words} by {actor}"
    )
    if decided:
        _tell_senders([delivery_id])
        text = f"The delivery in doubt was {words}."
        journal.record(JournalKind.RESOLVED, text, actor=actor, delivery_id=delivery_id)
    return bool(decided)


def _make_siblings_redundant(delivery_id: int) -> None:
    row = Delivery.objects.values("message_id", "queue_group").get(pk=delivery_id)
    if row["queue_group"] is not None:
        rows = orjson.dumps([row | {"delivery_id": delivery_id}]).decode()
        queries.execute("make_redundant", {"rows": rows})


def _tell_senders(delivery_ids: Collection[int]) -> None:
    """Let the lanes read again: what a sender has read already is still in its hands."""
    lanes = Delivery.objects.filter(pk__in=delivery_ids).exclude(lane=None).values_list("lane_id", flat=True)
    wake.nudge(*lanes.distinct().order_by())


def _cancel(delivery_ids: Collection[int], *, reason: str) -> int:
    return len(queries.rows("cancel", {"delivery": list(delivery_ids), "reason": reason}))
