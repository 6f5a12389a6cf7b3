"""Retention: removes settled, old and archived messages, singly or in whole ranges.

A pass goes through the messages by id. It begins an hour after the last pass began, or when a
person starts it. A range or a batch of messages is one transaction, with the progress, so a killed
process has changed nothing. `maintenance/README.md` says which messages stay, and lists the races;
`remove_messages.sql` has the conditions.
"""

from dataclasses import astuple
from datetime import datetime, timedelta

import orjson
from django.db import IntegrityError, transaction

from delivery.database import queries
from delivery.history.archive.small_files import ArchiveError
from delivery.lifecycle import journal
from delivery.lifecycle.transitions import RESUBMITTABLE
from delivery.maintenance import (
    archived_files,
    kept_ranges,
    ranges,
    retention_ranges,
    retention_rules,
)
from delivery.maintenance.archived_files import FilesLostError
from delivery.maintenance.retention_ranges import RangeSection
from delivery.maintenance.retention_rules import UNMATCHED, RetentionRules
from delivery.models import JournalEntry, JournalKind, Message, RetentionRun, RetentionState
from subscriptions import changes
from subscriptions.values.counts import counted

EVERY = timedelta(hours=1)
# Messages removed in a transaction: some 100 ms.
BATCH = 500
# Messages examined in a transaction, if they stay.
LOOK = 5_000
# Rows of a kind deleted in a transaction.
FORGET = 5_000
# Ids are drawn slightly before the time of publication is set, so the two orders differ a little.
_OUT_OF_ORDER = 1_000
# How long requests to built-in receivers are kept.
_RECEIVED_KEPT = timedelta(days=7)
# How long passes without removals are kept.
_IDLE_RUNS_KEPT = timedelta(days=7)


class AlreadyRunningError(Exception):
    """A pass is under way: `run`."""

    def __init__(self, run: RetentionRun) -> None:
        super().__init__(f"Pass {run.pk} is running.")
        self.run = run


def start_pass(*, actor: str, now: datetime) -> RetentionRun:
    """Start a pass for a person; chores execute it. Raises AlreadyRunningError."""
    with transaction.atomic():
        run = _begin(now)
        if run is None:
            raise AlreadyRunningError(RetentionRun.objects.get(state=RetentionState.RUNNING))
        changes.record_change(
            actor=actor, action="started", instance=run, before=None, after={"last_id": run.last_id}
        )
    return run


def is_due(now: datetime) -> bool:
    """Return whether `advance_pass` has something to do."""
    return queries.is_true("is_pass_due", {"until": now - EVERY})


def advance_pass(now: datetime) -> int:
    """Execute the next part of the current or due pass; return 0 if there is none.

    Call it in a transaction, under the duty's lock.
    """
    run = RetentionRun.objects.order_by("-id").first()
    if run is None or (run.state == RetentionState.DONE and run.started_at <= now - EVERY):
        run = _begin(now)
    if run is None or run.state == RetentionState.DONE:
        return 0
    if run.position == 0 and (forgotten := _forget(run, now)):
        return forgotten
    try:
        _remove_some(run, now=now)
    except ArchiveError as error:
        _keep_all(run, str(error), now=now)
    return 1


def _begin(now: datetime) -> RetentionRun | None:
    """Store a pass over all messages old enough for removal; None if another pass is running."""
    RetentionRun.objects.filter(
        state=RetentionState.DONE, messages=0, started_at__lt=now - _IDLE_RUNS_KEPT
    ).delete()
    first = Message.objects.order_by("id").values_list("id", flat=True).first()
    try:
        with transaction.atomic():
            return RetentionRun.objects.create(
                first_id=first or 0, last_id=_last_id(now), started_at=now
            )
    except IntegrityError:
        return None


def _last_id(now: datetime) -> int:
    """Return the last removable message: deliveries settle after the message's publication."""
    until = retention_rules.current_rules().until(now=now)
    if not until:
        return 0
    old = Message.objects.filter(published_at__lt=max(until.values())).order_by(
        "-published_at", "-id"
    )
    return max(old.values_list("id", flat=True)[:_OUT_OF_ORDER], default=0)


def _forget(run: RetentionRun, now: datetime) -> int:
    """Delete the oldest rows of no further use; return their number, 0 when all are deleted."""
    journal_until = _forgettable_journal(run, now=now)
    counts = [
        queries.row("forget_idempotency_keys", {"limit": FORGET}),
        queries.row("forget_dedup_keys", {"limit": FORGET}),
        queries.row("forget_join_keys", {"limit": FORGET}),
        queries.row("forget_configuration_transactions", {}),
        queries.row("forget_received_requests", {"until": now - _RECEIVED_KEPT}),
    ]
    if journal_until is not None:
        counts.append(queries.row("forget_journal", {"limit": FORGET, "until": journal_until}))
    return sum(forgotten for (forgotten,) in counts)


def _forgettable_journal(run: RetentionRun, *, now: datetime) -> datetime | None:
    """Return the time before which journal entries are removed; None to keep all."""
    rules = retention_rules.current_rules()
    until = rules.journal_until(now=now)
    if until is None or not JournalEntry.objects.filter(at__lt=until).exists():
        return None
    try:
        if rules.waits_for_archive:
            archived_files.require_files_of_journal(until=until)
    except ArchiveError as error:
        run.kept_because = str(error)
        return None
    return until


def _keep_all(run: RetentionRun, reason: str, *, now: datetime) -> None:
    """End the pass: nothing can be asked of the archive. The next pass asks again."""
    run.kept_because = reason
    _end(run, now=now)
    run.save()


def _remove_some(run: RetentionRun, *, now: datetime) -> None:
    """Remove the next range or the removable among the next messages; update the position."""
    rules = retention_rules.current_rules()
    section = retention_ranges.section_after(run.position, last_id=run.last_id)
    before = run.position
    try:
        if not _remove_section(run, section, rules, now=now):
            # The turn ends here: until the commit all other transactions wait for the tables.
            return
    except FilesLostError as error:
        # Other messages are in other files: go on behind these.
        run.kept_because = run.kept_because or str(error)
        if run.position == before:
            run.position = section.last_id
    if run.position >= run.last_id:
        _end(run, now=now)
    run.save()


def _remove_section(
    run: RetentionRun, section: RangeSection, rules: RetentionRules, *, now: datetime
) -> bool:
    """Remove a section's messages, or some; False if a range was dropped, and the pass is saved."""
    whole = section.whole
    if whole and kept_ranges.is_known_kept(whole, rules, now=now):
        run.position = section.last_id
    elif whole and (removed := retention_ranges.remove_range(whole, rules, now=now)):
        _add(run, astuple(removed))
        run.position = whole.until_id - 1
        run.save()
        return False
    elif whole and kept_ranges.is_kept(whole, rules, now=now):
        run.position = section.last_id
    else:
        _remove_rows(run, rules, last_id=section.last_id, now=now)
    return True


def _remove_rows(run: RetentionRun, rules: RetentionRules, *, last_id: int, now: datetime) -> None:
    """Examine the next messages, and remove the removable."""
    until = rules.until(now=now)
    chosen = {
        "until": orjson.dumps(until).decode(),
        "unmatched_until": until.get(UNMATCHED),
        "archived_until": rules.waits_until,
        "resubmittable": [status.value for status in RESUBMITTABLE],
    }
    place = {"position": run.position, "last": last_id, "look": LOOK, "batch": BATCH}
    removable, run.position = queries.row("ripe_messages", {**chosen, **place})
    if removable:
        messages, deliveries = queries.row("lock_for_removal", {"ripe": removable})
        if messages and rules.waits_for_archive:
            archived_files.require_files_of_messages(min(messages), max(messages))
        # A separate statement, to see commits from before the rows were locked.
        _add(
            run,
            queries.row(
                "remove_messages", {**chosen, "messages": messages, "deliveries": deliveries}
            ),
        )


def _add(run: RetentionRun, removed: tuple[int, ...]) -> None:
    run.messages, run.deliveries, run.attempts = (
        before + more
        for before, more in zip((run.messages, run.deliveries, run.attempts), removed, strict=True)
    )


def _is_known(run: RetentionRun) -> bool:
    """Return whether the pass before ended with the same reason: the journal has it once."""
    before = RetentionRun.objects.filter(pk__lt=run.pk).order_by("-pk").first()
    return before is not None and before.kept_because == run.kept_because


def _end(run: RetentionRun, *, now: datetime) -> None:
    ranges.drop_emptied(until_id=run.last_id)
    run.state = RetentionState.DONE
    run.ended_at = now
    if run.kept_because and not _is_known(run):
        text = f"Pass {run.pk} of retention kept messages that it would have removed."
        journal.record_entry(JournalKind.REMOVED, f"{text} {run.kept_because}")
    if run.messages:
        text = (
            f"Pass {run.pk} of retention removed {counted(run.messages, 'message')} with "
            f"{counted(run.deliveries, 'delivery')} and {counted(run.attempts, 'attempt')}, "
            f"up to msg_{run.last_id}."
        )
        journal.record_entry(JournalKind.REMOVED, text)
