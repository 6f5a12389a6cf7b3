"""Selection of a replay's messages: the archived messages that match its filter, as it is now.

The subscriptions which got a message at its publication do not matter: a replay also serves newer
subscriptions. But a message with a destination is for this destination alone, and an edited copy
sent again by a person is for no other subscription: the original is replayed.

    read the replay ─▶ query Spark, spool ids ─▶ lock it; is it SELECTING? ─┐
                     1                         2                            │
                                 commit ◀─ copy the items, count, READY ◀───┘
                                         3

A run killed or stopped at 1–3 has changed nothing: the replay is selected again from the beginning.
A cancellation meanwhile is seen under the lock, and so is another, faster run. The transaction does
not include Spark's minutes, only the copying.
"""

import tempfile
from collections import Counter
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import IO, TYPE_CHECKING, Any

import orjson

from delivery.database.statements import statement
from delivery.history.archive import ledger
from delivery.history.archive.losses import require_files
from delivery.history.job import StepJob, StepRefusedError
from delivery.history.schemas import MESSAGES
from delivery.history.transforms.effects import matching_condition
from subscriptions.filters.to_spark import to_spark
from subscriptions.filters.tree import Condition

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SELECTING = "SELECTING"
# The number of rows between two progress reports.
_ROWS_A_WORD = 10_000

Counts = Counter[tuple[str, date]]


class ReplayGoneError(StepRefusedError):
    """The replay was deleted with the subscription."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplaySelection:
    """Messages published from `since` to before `until`.

    `destinations` are the names of the subscription as a destination of messages.
    """

    since: datetime
    until: datetime
    event_types: tuple[str, ...]
    filter: str = ""
    header_filter_string: str = ""
    destinations: tuple[str, ...] = ()

    @property
    def condition(self) -> Condition | None:
        """The condition on header and body, as in matching."""
        return matching_condition(self.header_filter_string, self.filter)

    @property
    def days(self) -> tuple[date, date]:
        return self.since.date(), (self.until - timedelta(microseconds=1)).date()


def matching_messages(messages: "DataFrame", wanted: ReplaySelection) -> "DataFrame":
    """Return id, event_type and day (UTC) of the matching messages."""
    from pyspark.sql.functions import col, lit, to_date

    selected = messages.where(
        (col("published_at") >= lit(wanted.since))
        & (col("published_at") < lit(wanted.until))
        & col("event_type").isin(*wanted.event_types)
        & col("edited_from").isNull()
        & col("destination").isin("", *wanted.destinations)
    )
    if (condition := wanted.condition) is not None:
        selected = selected.where(to_spark(condition, header=col("headers"), body=col("body")))
    return selected.select("id", "event_type", to_date("published_at").alias("day"))


def select_messages(job: StepJob, *, replay_id: int) -> dict[str, Any]:
    """Store a replay's messages as items, and set it to READY; return `count` and `preview`.

    A replay no longer SELECTING is unchanged; `state` is the replay's state then.
    """
    state, wanted = _load_selection(job, replay_id)
    if state != SELECTING:
        return {"replay": replay_id, "state": state, "count": 0, "preview": []}
    since, until = wanted.days
    files = ledger.files(job.database, MESSAGES.name, since=since, until=until)
    with tempfile.TemporaryFile() as spool:
        counts: Counts = Counter()
        if files:
            require_files(job.archive, files)
            frame = job.read_files(MESSAGES, files)
            job.progress.doing(f"looking through {sum(file.rows for file in files):,} messages")
            counts = _spool(job, matching_messages(frame, wanted), spool, replay_id)
        job.progress.doing(f"keeping {counts.total():,} messages")
        return _keep(job, replay_id, spool, counts)


def _load_selection(job: StepJob, replay_id: int) -> tuple[str, ReplaySelection]:
    row = job.database.execute(statement("replay_to_select"), {"replay": replay_id}).fetchone()
    if row is None:
        raise ReplayGoneError(
            f"There is no replay {replay_id}: its subscription was deleted. "
            "Replay the messages to another subscription."
        )
    state, since, until, event_types, filter_text, header_filter_string, destinations = row
    return str(state), ReplaySelection(
        since=since,
        until=until,
        event_types=tuple(event_types),
        filter=str(filter_text),
        header_filter_string=str(header_filter_string),
        destinations=tuple(destinations),
    )


def _spool(job: StepJob, selected: "DataFrame", spool: IO[bytes], replay_id: int) -> Counts:
    """Write any number of ids to the spool, in COPY's format; count them by event type and day."""
    counts: Counts = Counter()
    for number, (id, event_type, day) in enumerate(
        selected.toLocalIterator(prefetchPartitions=True), start=1
    ):
        spool.write(b"%d\t%d\n" % (replay_id, id))
        counts[event_type, day] += 1
        if number % _ROWS_A_WORD == 0:
            job.progress.advance(number, None)
    job.progress.advance(counts.total(), counts.total())
    return counts


def _keep(job: StepJob, replay_id: int, spool: IO[bytes], counts: Counts) -> dict[str, Any]:
    preview = [
        {"event": event_type, "day": day.isoformat(), "count": count}
        for (event_type, day), count in sorted(
            counts.items(), key=lambda item: (item[0][1], item[0][0])
        )
    ]
    result = {"replay": replay_id, "count": counts.total(), "preview": preview}
    with job.database.transaction():
        locked = job.database.execute(statement("lock_replay"), {"replay": replay_id}).fetchone()
        if locked is None or locked[0] != SELECTING:
            return result | {"state": locked and locked[0], "count": 0, "preview": []}
        spool.seek(0)
        with job.database.cursor().copy(statement("copy_replay_items")) as copy:
            while part := spool.read(1 << 20):
                copy.write(part)
        ready = {
            "replay": replay_id,
            "count": counts.total(),
            "preview": orjson.dumps(preview).decode(),
        }
        job.database.execute(statement("ready_replay"), ready)
    return result | {"state": "READY"}
