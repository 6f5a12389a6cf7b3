"""Verify: checks README's promises over the whole history.

The result is "proven", or "broken here" with the rows. The whole history is the archive and the
rows that are not archived yet, as one snapshot of PostgreSQL shows both: the ledger's files, and
the deliveries that are open or were settled since the watermark. The latter are read first, onto
the disks of the workers, and the snapshot ends before the archive is read, however large that is.
The summary of each delivery is kept there too, once, for all checks to read.

The findings of a run, at most MOST_FINDINGS of each kind, are written in one transaction at its
end; its result has their total number.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from delivery.database.statements import statement
from delivery.history import schemas
from delivery.history.archive import ledger
from delivery.history.archive.ledger import File
from delivery.history.checks.attempts import check_attempts, tried_counts
from delivery.history.checks.finding import COLUMNS, KINDS, broken_counts, findings
from delivery.history.checks.groups import check_groups, group_counts
from delivery.history.checks.holds import about_holds, about_many, about_urls, times_of_holds
from delivery.history.checks.known_deliveries import known_deliveries, places
from delivery.history.checks.order import (
    in_turn,
    late_deliveries,
    mark_doubtful,
    of_doubted,
    order_counts,
    overtaken_deliveries,
)
from delivery.history.checks.owed_deliveries import check_owed, owed_counts
from delivery.history.job import StepJob
from delivery.history.postgres.unarchived_rows import EVER, Rest
from delivery.history.postgres.window import snapshot
from delivery.history.schemas import Table
from delivery.history.spark import frames

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

MOST_FINDINGS = 1_000
PROVEN, BROKEN = "proven", "broken here"
Counts = dict[str, int]
_OWNERS = (schemas.Column("subscription_id", "bigint"), schemas.Column("subscriber_id", "bigint"))
_PLACES = (schemas.Column("subscription_id", "bigint"), schemas.Column("endpoint", "string"))


class Judgement:
    """The findings of the checks so far."""

    def __init__(self) -> None:
        self.broken = dict.fromkeys(KINDS, 0)
        self.findings: list[tuple[Any, ...]] = []

    def judge(self, frame: "DataFrame", counts: "Column | None" = None) -> Counts:
        """Add the findings in `broken` of the frame, and return its counts."""
        columns = [broken_counts().alias("broken")] + (
            [] if counts is None else [counts.alias("counts")]
        )
        row = frame.agg(*columns).first()
        assert row is not None
        for kind, count in row["broken"].asDict().items():
            if count:
                room = max(MOST_FINDINGS - self.broken[kind], 0)
                rows = findings(frame).filter(f"kind = '{kind}'").limit(room)
                self.findings += map(tuple, rows.collect())
                self.broken[kind] += count
        return {} if counts is None else row["counts"].asDict()


def verify_history(job: StepJob) -> dict[str, Any]:
    """Check the whole history and write the findings; return the verdict and all counts."""
    judgement = Judgement()
    with _history(job) as history:
        job.progress.doing("checking attempts")
        attempts = judgement.judge(check_attempts(history.deliveries), tried_counts())
        job.progress.advance(attempts["attempts"], attempts["attempts"])
        job.progress.doing("checking the order of each subscriber")
        turns = mark_doubtful(in_turn(history.deliveries, history.holds))
        order = _counts(turns, order_counts())
        if order.pop("doubted"):
            job.progress.doing("checking suspected violations of order")
            _judge_order(judgement, of_doubted(turns))
        job.progress.doing("checking groups")
        grouped = judgement.judge(check_groups(history.deliveries), group_counts())
        job.progress.doing("checking that nothing is missing")
        counts = judgement.judge(check_owed(history.messages, history.deliveries), owed_counts())
    _write(job, judgement)
    broken = judgement.broken
    return {
        "verdict": BROKEN if any(broken.values()) else PROVEN,
        "messages": counts["messages"],
        "deliveries": attempts["deliveries"],
        "attempts": attempts["attempts"],
        "until": history.until,
        "checks": [
            _check("ORDER", order, broken),
            _check("TWICE", _some(attempts, checked="succeeded", sent_again="sent_again"), broken),
            _check("OWED", counts, broken),
            _check("GROUP", grouped, broken),
            _check("GAPS", _some(attempts, checked="deliveries", lost="lost"), broken),
            _check("STRAY", _some(attempts, checked="attempts"), broken),
        ],
    }


def _judge_order(judgement: Judgement, turns: "DataFrame") -> None:
    with (
        frames.kept_frame(turns) as numbered,
        frames.kept_frame(late_deliveries(numbered)) as found,
    ):
        judgement.judge(overtaken_deliveries(found, numbered))


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedHistory:
    """The input of the checks: deliveries, holds, archived messages, and the watermark."""

    deliveries: "DataFrame"
    holds: "DataFrame"
    messages: "DataFrame"
    until: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class UnarchivedRows:
    """Unarchived rows of a PostgreSQL snapshot, kept by Spark, and the archive's valid files."""

    until: datetime | None
    deliveries: "DataFrame"
    journal: "DataFrame"
    places: list[tuple[int, str]]
    owners: list[tuple[int, int]]
    files: dict[str, list[File]]

    def archived(self, job: StepJob, table: Table) -> "DataFrame":
        return job.archive.frame(job.spark, table, self.files[table.name])


@contextmanager
def _history(job: StepJob) -> Iterator[CheckedHistory]:
    with ExitStack() as kept:
        unarchived = _rows(job, kept)
        job.progress.doing("reading the archive")
        archived = unarchived.archived(job, schemas.DELIVERIES)
        journal = about_holds(
            unarchived.archived(job, schemas.JOURNAL).unionByName(unarchived.journal)
        )
        journal = kept.enter_context(frames.kept_frame(journal))
        owners = _owners(job, unarchived, archived, journal)
        holds = kept.enter_context(
            frames.kept_frame(
                times_of_holds(journal, _places(job, unarchived, archived, journal), owners)
            )
        )
        # Computed by the first check that reads it.
        attempts = unarchived.archived(job, schemas.ATTEMPTS)
        deliveries = kept.enter_context(
            frames.kept_frame(
                known_deliveries(archived, attempts, unarchived.deliveries), is_needed_now=False
            )
        )
        yield CheckedHistory(
            deliveries=deliveries,
            holds=holds,
            messages=unarchived.archived(job, schemas.MESSAGES).select("id", "owed"),
            until=unarchived.until.isoformat() if unarchived.until else None,
        )


def _rows(job: StepJob, kept: ExitStack) -> UnarchivedRows:
    """Read all input from PostgreSQL in one snapshot.

    End it then: joining the archive may take minutes.
    """
    job.progress.doing("reading unarchived rows")
    with snapshot(job.conninfo) as seen:
        until = ledger.archived_until(seen.connection)
        rest = Rest(spark=job.spark, conninfo=job.conninfo, snapshot=seen.name, since=until or EVER)
        names = seen.connection.execute(statement("subscription_names")).fetchall()
        return UnarchivedRows(
            until=until,
            deliveries=kept.enter_context(frames.kept_frame(rest.deliveries())),
            journal=kept.enter_context(frames.kept_frame(rest.journal())),
            places=[(subscription_id, endpoint) for subscription_id, *_, endpoint in names],
            owners=[
                (subscription_id, subscriber_id) for subscription_id, subscriber_id, *_ in names
            ],
            files={
                table.name: ledger.files(seen.connection, table.name) for table in schemas.TABLES
            },
        )


def _places(
    job: StepJob, unarchived: UnarchivedRows, deliveries: "DataFrame", journal: "DataFrame"
) -> "DataFrame":
    """Return the current URLs of deliveries, and the earlier ones if any URL was ever stopped."""
    now = frames.frame_of_rows(job.spark, _PLACES, unarchived.places)
    if about_urls(journal).isEmpty():
        return places(now)
    return places(now.unionByName(deliveries.select("subscription_id", "endpoint")))


def _owners(
    job: StepJob, unarchived: UnarchivedRows, deliveries: "DataFrame", journal: "DataFrame"
) -> "DataFrame":
    """Return the owners of subscriptions, current and earlier.

    Earlier ones are read only if a subscriber, or all sending, was ever held.
    """
    now = frames.frame_of_rows(job.spark, _OWNERS, unarchived.owners)
    if about_many(journal).isEmpty():
        return now
    return now.unionByName(deliveries.select("subscription_id", "subscriber_id")).distinct()


def _counts(frame: "DataFrame", counts: "Column") -> Counts:
    row = frame.agg(counts.alias("counts")).first()
    assert row is not None
    result: Counts = row["counts"].asDict()
    return result


def _some(counts: Counts, **names: str) -> Counts:
    return {name: counts[known_as] for name, known_as in names.items()}


def _check(kind: str, counts: Counts, broken: Counts) -> dict[str, Any]:
    explained = {
        name: count for name, count in counts.items() if name not in ("checked", "messages")
    }
    return {
        "kind": kind,
        "checked": counts["checked"],
        "explained": explained,
        "broken": broken[kind],
    }


def _write(job: StepJob, judgement: Judgement) -> None:
    job.progress.doing("writing the findings")
    with job.database.transaction(), job.database.cursor() as cursor:
        cursor.execute(statement("forget_findings"), {"run": job.run_id})
        with cursor.copy(
            f"COPY delivery_finding (run_id, {', '.join(COLUMNS)}) FROM STDIN"
        ) as copy:
            for row in judgement.findings:
                copy.write_row((job.run_id, *row))
