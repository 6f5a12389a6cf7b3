"""Creates the deliveries of a RUNNING replay in batches, in publication order, at its rate.

A batch is one transaction, and a duty of the chores. A killed process has changed nothing, and no
message is delivered twice. `README.md` has the steps, the crash windows and the races.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.db import transaction

from delivery.database import queries
from delivery.lifecycle import journal, notifier
from delivery.models import JournalKind, Replay, ReplayItem, ReplayState
from delivery.models.message import public_id
from delivery.support import pacing
from delivery.support.replays import archive_lookup
from subscriptions.values.counts import counted

if TYPE_CHECKING:
    from subscriptions.models import Subscription

# As many as in a batch of a resubmission: the rows are new, but the messages are locked.
BATCH = 500
# The pause after the archive could not be read.
PAUSE = timedelta(seconds=30)
# How long a user can look up which message became which delivery.
ITEMS_KEPT = timedelta(days=7)
FORGET = 5_000
_NAMED = 10
# Only originals are restored (see `delivery.history.steps.replay`), so without `edited_from`.
_RESTORED_COLUMNS = (
    *(
        "id",
        "event_type",
        "publisher",
        "headers",
        "content_type",
        "body",
        "destination",
        "published_at",
    ),
    *("owed", "transaction_id", "seen_before"),
)


class NotRestoredError(Exception):
    """The archive could not be read; the message gives the reason and where to look."""


@dataclass(frozen=True, slots=True)
class Made:
    """The result of a batch: the messages with their new delivery, and the lanes with work."""

    message_ids: Sequence[int]
    lane_ids: Sequence[int]


def is_due(now: datetime) -> bool:
    """Return whether `advance_replay` may find something."""
    return queries.is_true("is_replay_due", {"now": now, "until": now - ITEMS_KEPT})


def advance_replay(now: datetime) -> int:
    """Run the next batch of the replay that is due longest; return the number of messages.

    Returns 1 if only the replay's end was recorded. Call it in a transaction, under the duty's
    lock.
    """
    due = Replay.objects.filter(state=ReplayState.RUNNING, due_at__lte=now)
    locked = due.select_for_update(skip_locked=True, of=("self",), no_key=True)
    replay = locked.select_related("subscription__subscriber").order_by("due_at", "id").first()
    if replay is None:
        return _forget_items(now)
    size = pacing.batch_size(replay.rate, most=BATCH)
    ids = list(_left(replay)[:size])
    try:
        with transaction.atomic():
            _deliver(replay, ids)
    except NotRestoredError as error:
        replay.error, replay.due_at = str(error), now + PAUSE
        replay.save(update_fields=["error", "due_at"])
        return 0
    _move(replay, ids, now=now)
    if len(ids) < size:
        _end(replay, now=now)
    replay.save()
    return len(ids) or 1


def _left(replay: Replay) -> Any:
    items = ReplayItem.objects.filter(replay=replay, message_id__gt=replay.position)
    return items.order_by("message_id").values_list("message_id", flat=True)


def _deliver(replay: Replay, ids: Sequence[int]) -> None:
    if not ids:
        return
    kept = {id for (id,) in queries.rows("keep_messages", {"message": list(ids)})}
    if missing := [id for id in ids if id not in kept]:
        restore_messages(missing)
    made = _made(replay, ids)
    replay.made += len(made.message_ids)
    if left_out := sorted(set(ids) - set(made.message_ids)):
        _record(replay, f"Not delivered, for {_reason(left_out)}")
    _notify(replay.subscription, made)


def _made(replay: Replay, ids: Sequence[int]) -> Made:
    environment = settings.ENVIRONMENT
    row = queries.row(
        "make_replayed",
        {
            "replay": replay.pk,
            "message": list(ids),
            "mailbox_days": environment.mailbox_days,
            "queue_senders": environment.queue_senders,
        },
    )
    return Made(*row)


def _reason(left_out: Sequence[int]) -> str:
    names = ", ".join(public_id(id) for id in left_out[:_NAMED])
    more = f" and {len(left_out) - _NAMED:,} more" if len(left_out) > _NAMED else ""
    return f"their event type is gone, or they are in the archive no more: {names}{more}."


def _notify(subscription: "Subscription", made: Made) -> None:
    if made.lane_ids:
        transaction.on_commit(lambda: notifier.notify_of_work(made.lane_ids))
    elif made.message_ids:
        transaction.on_commit(lambda: notifier.notify_of_messages([subscription.subscriber_id]))


def _move(replay: Replay, ids: Sequence[int], *, now: datetime) -> None:
    replay.error = ""
    replay.done += len(ids)
    replay.position = ids[-1] if ids else replay.position
    replay.due_at = pacing.due_after(replay.due_at, done=len(ids), rate=replay.rate, now=now)


def _end(replay: Replay, *, now: datetime) -> None:
    replay.state = ReplayState.DONE
    replay.ended_at = now
    _record(
        replay, f"Done: {replay.made:,} of {counted(replay.count, 'message')} became deliveries."
    )


def _forget_items(now: datetime) -> int:
    (count,) = queries.row("forget_replay_items", {"until": now - ITEMS_KEPT, "limit": FORGET})
    return int(count)


def _record(replay: Replay, text: str) -> None:
    text = f"{str(replay).capitalize()} to {replay.subscription}. {text}"
    journal.record_entry(
        JournalKind.REPLAYED, text, actor=replay.asked_by, subscription_id=replay.subscription_id
    )


def restore_messages(ids: Sequence[int]) -> int:
    """Restore those of these messages which are in the archive; return their number.

    Their archived deliveries and attempts are not restored: the new delivery is the only delivery
    in PostgreSQL. The message is not archived again, because it was published before the watermark;
    retention removes it like any other, once the delivery is old enough.

    A message whose event type no longer exists is skipped. Raises NotRestoredError. Call it in a
    transaction.
    """
    # Imported here because it imports the Parquet reader.
    from delivery.history.archive.small_files import ArchiveError

    try:
        return sum(_put_back(rows) for rows in archive_lookup.open_lookup().messages(ids))
    except ArchiveError as error:
        raise NotRestoredError(str(error)) from error


def _put_back(rows: Sequence[dict[str, Any]]) -> int:
    columns = {name: [row[name] for row in rows] for name in _RESTORED_COLUMNS}
    row = queries.first_row("restore_messages", columns)
    assert row is not None
    count: int = row[0]
    return count
