"""Bulk jobs: selected deliveries are resubmitted or cancelled, oldest first, at a rate.

A resubmission selects the deliveries that were settled when the job was created, a cancellation
those that existed then and are open at their turn. A job visits each delivery once, in the order of
ids. A delivery that fails again during the job is not resubmitted again; a delivery resubmitted by
a person after its cancellation stays open. Each batch is one transaction with the progress, so
after a crash the job continues where it was, and `next_at` keeps the rate whichever process
continues it.

Senders and mailbox clients go on meanwhile. All rows of a batch are locked first, with their QUEUE
groups, in the order of ids, as everywhere; if a batch deadlocks with locks taken in another order,
the database rolls it back and the periodic job repeats it. A delivery settled between selection and
lock stays as it is, because each change is a conditional UPDATE. A delivery being sent during the
cancellation stays CANCELLED, with this attempt in the history; deliveries read but not sent by a
sender are dropped when it is notified of the commit.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import Max, QuerySet

from delivery.database import queries
from delivery.lifecycle import journal, transitions
from delivery.models import BulkVerb, Delivery, JournalKind, Resubmission, ResubmissionState
from delivery.publishing import failures
from delivery.support import backlog, pacing, selection
from subscriptions import changes
from subscriptions.models import Subscription
from subscriptions.values.counts import counted

# Small enough for senders, which may have to wait for the batch's rows.
BATCH = 500
# Deliveries per second; a rate above a batch a second is as good as none.
SLOWEST_RATE, FASTEST_RATE = 0.01, BATCH

_KINDS = {BulkVerb.RESUBMIT: JournalKind.RESUBMITTED, BulkVerb.CANCEL: JournalKind.CANCELLED}
_DONE = {BulkVerb.RESUBMIT: "sent again", BulkVerb.CANCEL: "cancelled"}


class BacklogError(Exception):
    """The job cancels a backlog for which a subscription waits, so it cannot be ended early."""


def start_job(
    chosen: Mapping[str, Any], *, rate: float | None, actor: str, verb: BulkVerb = BulkVerb.RESUBMIT
) -> Resubmission:
    """Store the job, which chores execute; `rate` is deliveries per second, None for no limit."""
    with transaction.atomic():
        last = Delivery.objects.aggregate(last=Max("id"))["last"] or 0
        count = sum(
            selection.counted_by_status(selection.selected_deliveries(chosen, verb)).values()
        )
        job = Resubmission.objects.create(
            verb=verb, filter=dict(chosen), rate=rate, actor=actor, count=count, last_id=last
        )
        job.refresh_from_db(fields=["created_at", "next_at"])
        state = "settled" if verb == BulkVerb.RESUBMIT else "open"
        _record(job, f"Begins: {deliveries_text(job, state)} to be {done_to(job)}.", actor)
        values = {"filter": job.filter, "rate": rate, "count": count_text(job)}
        changes.record_change(
            actor=actor, action="created", instance=job, before=None, after=values
        )
    return job


def start_backlog(subscription: Subscription, *, actor: str) -> Resubmission | None:
    """Start the cancellation of a subscription's backlog; None if it is empty.

    See `delivery.support.backlog`. Call it in the activating transaction of the subscription, with
    the row locked.
    """
    count = backlog.count_backlog(subscription, limit=selection.COUNT_LIMIT)
    if not count:
        return None
    job = Resubmission.objects.create(
        verb=BulkVerb.CANCEL,
        filter={"subscription": str(subscription.pk)},
        is_backlog=True,
        actor=actor,
        count=count,
        last_id=backlog.last_id(),
    )
    job.refresh_from_db(fields=["created_at", "next_at"])
    backlog.begin_cancellation(subscription, cancellation_id=job.pk)
    _record(
        job,
        f"Begins: {deliveries_text(job, 'held')} of {subscription} to be cancelled.",
        actor,
    )
    return job


def cancel_job(job: Resubmission, *, actor: str, now: datetime) -> bool:
    """End the job; the changes stay. False if it had ended already; raises BacklogError."""
    if job.is_backlog and job.state == ResubmissionState.RUNNING:
        raise BacklogError
    with transaction.atomic():
        running = Resubmission.objects.filter(pk=job.pk, state=ResubmissionState.RUNNING)
        if not running.update(state=ResubmissionState.CANCELLED, ended_at=now):
            return False
        job.refresh_from_db()
        _record(
            job,
            f"Cancelled after {job.done:,}; {job.changed:,} of them were {done_to(job)}.",
            actor,
        )
        before, after = {"state": ResubmissionState.RUNNING.value}, {"state": job.state}
        changes.record_change(
            actor=actor, action="cancelled", instance=job, before=before, after=after
        )
    return True


def is_due(now: datetime) -> bool:
    """Return whether `advance_job` may find something."""
    return queries.is_true("is_job_due", {"now": now})


def advance_job(now: datetime) -> int:
    """Execute the next batch of the job that is due longest.

    Returns the number of visited deliveries, or 1 if the job has ended. Call it in a transaction; a
    person who cancels the job meanwhile waits for the batch.
    """
    due = Resubmission.objects.filter(state=ResubmissionState.RUNNING, next_at__lte=now)
    job = due.order_by("next_at", "id").select_for_update(skip_locked=True).first()
    if job is None:
        return 0
    size = pacing.batch_size(job.rate, most=BATCH)
    ids = _next(job, size=size)
    _do(job, ids, now=now)
    # A backlog has no short last batch: it is searched once more.
    if len(ids) < (1 if job.is_backlog else size):
        _end(job, now=now)
    job.save()
    return len(ids) or 1


def count_text(job: Resubmission) -> str:
    most = selection.COUNT_LIMIT
    return f"more than {most:,}" if job.count > most else f"{job.count:,}"


def deliveries_text(job: Resubmission, state: str) -> str:
    if job.count > selection.COUNT_LIMIT:
        return f"{count_text(job)} {state} deliveries"
    return counted(job.count, f"{state} delivery")


def done_to(job: Resubmission) -> str:
    """Return the job's effect on the deliveries in words: `sent again` or `cancelled`."""
    return _DONE[BulkVerb(job.verb)]


def _next(job: Resubmission, *, size: int) -> list[int]:
    if job.is_backlog:
        return backlog.next_of_backlog(
            _cancelled_by(job), after=job.position, until=job.last_id, limit=size
        )
    return list(_left(job)[:size])


def _cancelled_by(job: Resubmission) -> int:
    return int(job.filter["subscription"])


def _left(job: Resubmission) -> QuerySet[Delivery, int]:
    left = selection.selected_deliveries(job.filter, job.verb).filter(
        id__gt=job.position, id__lte=job.last_id
    )
    if job.verb == BulkVerb.RESUBMIT:
        left = left.filter(settled_at__lte=job.created_at)
    return left.values_list("id", flat=True)


def _do(job: Resubmission, ids: list[int], *, now: datetime) -> None:
    # This also locks all rows. Those changed first by somebody else are no longer selected below.
    failures.publish_notices_of(ids)
    left = (
        selection.selected_deliveries(job.filter, job.verb).values_list("id", flat=True)
        if job.is_backlog
        else _left(job)
    )
    remaining = list(left.filter(id__in=ids))
    by = f"by {job.actor} ({job})"
    if job.verb == BulkVerb.CANCEL:
        job.changed += transitions.cancel_some(
            remaining, reason=f"cancelled {by}", are_read=not job.is_backlog
        )
    else:
        job.changed += len(transitions.reopen_deliveries(remaining, reason=f"resubmitted {by}"))
    job.done += len(ids)
    job.position = max(job.position, ids[-1]) if ids else job.last_id
    job.next_at = pacing.due_after(job.next_at, done=len(ids), rate=job.rate, now=now)


def _end(job: Resubmission, *, now: datetime) -> None:
    job.state = ResubmissionState.DONE
    job.ended_at = now
    if job.is_backlog:
        backlog.end_cancellation(_cancelled_by(job), cancellation_id=job.pk)
    done = counted(job.done, "delivery")
    _record(job, f"Done: {job.changed:,} of {done} {done_to(job)}.", job.actor)


def _record(job: Resubmission, text: str, actor: str) -> None:
    journal.record_entry(
        _KINDS[BulkVerb(job.verb)], f"{str(job).capitalize()}. {text}", actor=actor
    )
