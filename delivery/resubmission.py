"""Resubmitting many: what a filter selects is sent again, oldest first, at a rate.

It selects what was settled when the job was made, and goes through that once, by id: what fails again meanwhile is
not sent a third time. Each batch is one transaction with its progress, so that after a crash it goes on
where it was, and `next_at` holds the rate whoever goes on.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import Max, Q, QuerySet
from django.utils.dateparse import parse_datetime

from delivery import failures, journal, lifecycle
from delivery.models import Delivery, JournalKind, Resubmission, ResubmissionState, Status
from subscriptions import changes
from subscriptions.models import Mode

# Small enough for the senders, which may wait for its rows.
BATCH = 500
# Counting ends here: it reads every delivery that it counts.
COUNT_LIMIT = 100_000
SAMPLE = 10
# Deliveries a second; faster than a batch a second is as fast as it goes.
SLOWEST_RATE, FASTEST_RATE = 0.01, BATCH

_LOOKUPS = {
    "subscriber": "subscription__subscriber__name",
    "event_type": "message__event_type__name",
    "message": "message_id",
}
# Not what a publisher waited for (SYNC).
_SENT_AGAIN = Q(lane__isnull=False) | Q(subscription__mode=Mode.PULL)
# Without a status it is these.
_FAILED = (Status.REJECTED, Status.UNSUPPORTED, Status.FAILED, Status.EXPIRED)
_MOMENTS = {"since": "message__published_at__gte", "until": "message__published_at__lt"}
_LONGEST_ID = 18


@dataclass(frozen=True, slots=True)
class Preview:
    """How many would be sent again, counted up to COUNT_LIMIT + 1, and the ids of the first."""

    count: int
    sample: list[int]


def selected(chosen: Mapping[str, Any]) -> QuerySet[Delivery]:
    """Return what a filter selects of what failed; what a person decided or has to decide only if its status is named.

    A filter has status (a list), subscriber, subscription (an id or a name), event_type, message (a number), since
    and until (of the publication, as text); what it does not have selects all.
    """
    rows = Delivery.objects.filter(_SENT_AGAIN, status__in=chosen.get("status") or _FAILED)
    rows = rows.filter(**{lookup: chosen[name] for name, lookup in _LOOKUPS.items() if name in chosen})
    moments = {lookup: parse_datetime(chosen[name]) for name, lookup in _MOMENTS.items() if name in chosen}
    return rows.filter(_of_subscription(chosen.get("subscription")), **moments).order_by("id")


def preview(chosen: Mapping[str, Any]) -> Preview:
    rows = selected(chosen)
    # In any order: to count in that of the ids, all that was delivered would be read, too.
    count = rows.order_by()[: COUNT_LIMIT + 1].count()
    return Preview(count, list(rows.values_list("id", flat=True)[:SAMPLE]))


def start(chosen: Mapping[str, Any], *, rate: float | None, actor: str) -> Resubmission:
    """Store the job, which chores work off; `rate` is deliveries a second, None as fast as it goes."""
    with transaction.atomic():
        last = Delivery.objects.aggregate(last=Max("id"))["last"] or 0
        job = Resubmission.objects.create(
            filter=dict(chosen), rate=rate, actor=actor, count=preview(chosen).count, last_id=last
        )
        job.refresh_from_db(fields=["created_at", "next_at"])
        _record(job, f"Begins: {counted(job)} deliveries that were settled are to be sent again.", actor)
        said = {"filter": job.filter, "rate": rate, "count": counted(job)}
        changes.record(actor=actor, action="created", instance=job, before=None, after=said)
    return job


def cancel(job: Resubmission, *, actor: str, now: datetime) -> bool:
    """End it; what was sent again stays so. False if it had ended."""
    with transaction.atomic():
        running = Resubmission.objects.filter(pk=job.pk, state=ResubmissionState.RUNNING)
        if not running.update(state=ResubmissionState.CANCELLED, ended_at=now):
            return False
        job.refresh_from_db()
        _record(job, f"Cancelled after {job.done:,}; {job.resubmitted:,} of them were sent again.", actor)
        before, after = {"state": ResubmissionState.RUNNING.value}, {"state": job.state}
        changes.record(actor=actor, action="cancelled", instance=job, before=before, after=after)
    return True


def advance(now: datetime) -> int:
    """Do the next batch of the job that is due longest, and return how many deliveries it went through, or 1 for its end.

    Call it in a transaction. Who cancels the job meanwhile waits for the batch.
    """
    due = Resubmission.objects.filter(state=ResubmissionState.RUNNING, next_at__lte=now)
    job = due.order_by("next_at", "id").select_for_update(skip_locked=True).first()
    if job is None:
        return 0
    size = BATCH if job.rate is None else max(1, min(BATCH, round(job.rate)))
    left = selected(job.filter).filter(
        id__gt=job.position, id__lte=job.last_id, settled_at__lte=job.created_at
    )
    ids = list(left.values_list("id", flat=True)[:size])
    _send_again(job, ids, now=now)
    if len(ids) < size:
        _end(job, now=now)
    job.save()
    return len(ids) or 1


def counted(job: Resubmission) -> str:
    return f"more than {COUNT_LIMIT:,}" if job.count > COUNT_LIMIT else f"{job.count:,}"


def _send_again(job: Resubmission, ids: list[int], *, now: datetime) -> None:
    failures.tell_of(ids)
    reopened = lifecycle.reopen(ids, reason=f"resubmitted by {job.actor} (resubmission {job.pk})")
    job.done += len(ids)
    job.resubmitted += len(reopened)
    job.position = ids[-1] if ids else job.last_id
    # What a late batch owes is made up for, but not what a long stop does.
    begins = max(job.next_at, now - timedelta(seconds=1))
    job.next_at = now if job.rate is None else begins + timedelta(seconds=len(ids) / job.rate)


def _end(job: Resubmission, *, now: datetime) -> None:
    job.state = ResubmissionState.DONE
    job.ended_at = now
    _record(job, f"Done: {job.resubmitted:,} of {job.done:,} deliveries were sent again.", job.actor)


def _record(job: Resubmission, text: str, actor: str) -> None:
    journal.record(JournalKind.RESUBMITTED, f"Resubmission {job.pk}. {text}", actor=actor)


def _of_subscription(text: str | None) -> Q:
    if text is None:
        return Q()
    if text.isascii() and text.isdigit() and len(text) <= _LONGEST_ID:
        return Q(subscription=int(text))
    return Q(subscription__name=text)
