"""Retention: what is settled, old enough and archived is removed, message by message with all they have, or whole ranges at once.

A pass goes through the messages by id. It begins an hour after the last began, or when a person asks for it. First it forgets
what is of no use any more: idempotency and dedup keys past their time, old journal entries; while a key is remembered, so is its
message. Then come ranges of messages, each dropped at once if all of it may go (`retention_ranges.py`), or else gone through in
batches. A range or a batch is one transaction with its progress, so whoever is killed has done nothing, and the next goes
on where it was.

A message goes when each of its deliveries is settled, longer ago than the days of its status, and archived: of a QUEUE group no
DELIVERED goes while a sibling could still be sent again. With it go its deliveries, attempts and callbacks, and
what refers to it: edited copies, answers to its callbacks; or none of them, when one has to stay. To stay has also what a failure
is still to be told of, what a person sent again after a settlement that is not archived yet, what a stopped lane names, what a key or
an open callback refers to, what a duplicate would be compared with, and what a running resubmission has before it.
`remove_messages.sql` has the conditions.

Races:
- A person has a delivery sent again, or edits it. Every row is locked before the conditions are asked anew, by a statement that
  sees what was committed until then. Who holds a row first wins: what somebody else has locked is passed over
  (SKIP LOCKED), so a pass never waits, nor is part of a deadlock; who comes second waits a batch, and finds nothing.
- A sender settles. It changes open deliveries, and those a person cancelled while they were under way: minutes ago, not days. The run that its
  lane has recorded may name deliveries long gone, if it was blocked for weeks; what looks a run up asks for PENDING ones.
- A publisher uses a key again that is about to be forgotten. Either it has locked the key, which is passed over, or it waits and finds the
  key free. What it stores is new, and of no pass.
- A message becomes visible late, behind the position. It is young; a later pass finds it.
- A resubmission begins at that moment. It finds fewer than were counted; the count was a preview.
- Two machines. A pass is a duty of the chores, done under its lock; and of two that begin one at once, the table takes one.
"""

from dataclasses import astuple
from datetime import datetime, timedelta

import orjson
from django.db import IntegrityError, transaction

from delivery.database import queries
from delivery.lifecycle import journal
from delivery.lifecycle.transitions import RESUBMITTABLE
from delivery.maintenance import ranges, retention_ranges, retention_rules
from delivery.maintenance.retention_rules import UNMATCHED, RetentionRules
from delivery.models import JournalKind, Message, RetentionRun, RetentionState
from subscriptions import changes

EVERY = timedelta(hours=1)
# Removed in one transaction: some 100 ms.
BATCH = 500
# Looked at in one, when they stay.
LOOK = 5_000
# Rows of one kind that are forgotten in one.
FORGET = 5_000
# Ids are drawn a little earlier than the time of publication is, so they are not quite in its order.
_OUT_OF_ORDER = 1_000
# A pass that found nothing is of no interest for long.
_IDLE_RUNS_KEPT = timedelta(days=7)


class AlreadyRunningError(Exception):
    """A pass is under way: `run`."""

    def __init__(self, run: RetentionRun) -> None:
        super().__init__(f"Pass {run.pk} is running.")
        self.run = run


def start(*, actor: str, now: datetime) -> RetentionRun:
    """Begin a pass for a person; chores do it. Raises AlreadyRunningError."""
    with transaction.atomic():
        run = _begin(now)
        if run is None:
            raise AlreadyRunningError(RetentionRun.objects.get(state=RetentionState.RUNNING))
        changes.record(
            actor=actor, action="started", instance=run, before=None, after={"last_id": run.last_id}
        )
    return run


def advance(now: datetime) -> int:
    """Do the next part of the pass that is under way or due; return 0 when there is none.

    Call it in a transaction, under the lock of the duty.
    """
    run = RetentionRun.objects.order_by("-id").first()
    if run is None or (run.state == RetentionState.DONE and run.started_at <= now - EVERY):
        run = _begin(now)
    if run is None or run.state == RetentionState.DONE:
        return 0
    if run.position == 0 and (forgotten := _forget(now)):
        return forgotten
    _remove_some(run, now=now)
    return 1


def _begin(now: datetime) -> RetentionRun | None:
    """Store a pass over all that is old enough to have something to remove; None if another is running."""
    RetentionRun.objects.filter(
        state=RetentionState.DONE, messages=0, started_at__lt=now - _IDLE_RUNS_KEPT
    ).delete()
    first = Message.objects.order_by("id").values_list("id", flat=True).first()
    try:
        with transaction.atomic():
            return RetentionRun.objects.create(first_id=first or 0, last_id=_last_id(now), started_at=now)
    except IntegrityError:
        return None


def _last_id(now: datetime) -> int:
    """Return the last message that may go: no delivery is settled before its message is published."""
    until = retention_rules.current().until(now=now)
    if not until:
        return 0
    old = Message.objects.filter(published_at__lt=max(until.values())).order_by("-published_at", "-id")
    return max(old.values_list("id", flat=True)[:_OUT_OF_ORDER], default=0)


def _forget(now: datetime) -> int:
    """Delete the oldest of what is of no use any more, and return how many rows: 0 when all is done."""
    journal_until = retention_rules.current().journal_until(now=now)
    counts = [
        queries.row("forget_idempotency_keys", {"limit": FORGET}),
        queries.row("forget_dedup_keys", {"limit": FORGET}),
        queries.row("forget_configuration_transactions", {}),
    ]
    if journal_until is not None:
        counts.append(queries.row("forget_journal", {"limit": FORGET, "until": journal_until}))
    return sum(forgotten for (forgotten,) in counts)


def _remove_some(run: RetentionRun, *, now: datetime) -> None:
    """Remove the next range, or those of the next messages that may go, and write how far it got."""
    rules = retention_rules.current()
    section = retention_ranges.section_after(run.position, last_id=run.last_id)
    if section.whole and (removed := retention_ranges.remove(section.whole, rules, now=now)):
        _add(run, astuple(removed))
        # The turn ends here: while it lasts, everybody else waits for the tables.
        run.position = section.whole.until_id - 1
    else:
        _remove_rows(run, rules, last_id=section.last_id, now=now)
        if run.position >= run.last_id:
            _end(run, now=now)
    run.save()


def _remove_rows(run: RetentionRun, rules: RetentionRules, *, last_id: int, now: datetime) -> None:
    """Look through the next messages, and remove those that may go."""
    until = rules.until(now=now)
    chosen = {
        "until": orjson.dumps(until).decode(),
        "unmatched_until": until.get(UNMATCHED),
        "archived_until": rules.waits_until,
        "resubmittable": [status.value for status in RESUBMITTABLE],
    }
    place = {"position": run.position, "last": last_id, "look": LOOK, "batch": BATCH}
    ripe, run.position = queries.row("ripe_messages", {**chosen, **place})
    if ripe:
        messages, deliveries = queries.row("lock_for_removal", {"ripe": ripe})
        # A statement of its own, so that it sees what others committed before their rows were locked.
        _add(run, queries.row("remove_messages", {**chosen, "messages": messages, "deliveries": deliveries}))


def _add(run: RetentionRun, removed: tuple[int, ...]) -> None:
    run.messages, run.deliveries, run.attempts = (
        before + more
        for before, more in zip((run.messages, run.deliveries, run.attempts), removed, strict=True)
    )


def _end(run: RetentionRun, *, now: datetime) -> None:
    ranges.drop_emptied(until_id=run.last_id)
    run.state = RetentionState.DONE
    run.ended_at = now
    if run.messages:
        text = (
            f"Pass {run.pk} of retention removed {run.messages:,} messages with {run.deliveries:,} deliveries and "
            f"{run.attempts:,} attempts, up to msg_{run.last_id}."
        )
        journal.record(JournalKind.REMOVED, text)
