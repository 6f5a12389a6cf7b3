"""The input of the checks: the whole history, or the part left to check by a proof.

The whole history is the archive and the unarchived rows, as a snapshot of PostgreSQL shows both:
the ledger's files, and the deliveries open or settled since the watermark. The latter are read
first, onto the disks of the workers, and the snapshot ends before the archive is read, however
large it is. The summary of each delivery is kept there too, once, for all checks to read.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from delivery.history import schemas
from delivery.history.archive.ledger import File
from delivery.history.archive.losses import (
    FileReport,
    look_at_folder,
    look_into_files,
    lost_rows,
)
from delivery.history.archive.proof import HistoryProof
from delivery.history.checks.holds import hold_entries, is_about_many, is_about_url, times_of_holds
from delivery.history.checks.known_deliveries import known_deliveries, places
from delivery.history.checks.since_proof import judged_deliveries, rows_read_again, touched_rows
from delivery.history.job import StepJob
from delivery.history.postgres.unarchived_rows import EVER
from delivery.history.schemas import Table
from delivery.history.spark import frames
from delivery.history.steps.kept_rows import compare_kept_rows
from delivery.history.steps.unarchived import UnarchivedRows, read_unarchived_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_OWNERS = (schemas.Column("subscription_id", "bigint"), schemas.Column("subscriber_id", "bigint"))
_PLACES = (schemas.Column("subscription_id", "bigint"), schemas.Column("endpoint", "string"))
# Of tables with large columns read by no check.
_NEEDED = {
    schemas.MESSAGES.name: ("id", "published_at", "owed"),
    schemas.ATTEMPTS.name: ("delivery_id", "number", "settled_at", "started_at", "outcome"),
}
# A settlement may have an earlier time than the message, by as much as the database's clock was set
# back.
_CLOCK_BACK = timedelta(hours=1)
_MICROSECOND = timedelta(microseconds=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedHistory:
    """The input of the checks.

    `known` has the deliveries to check, and others needed only for the order of their lanes;
    `judged` those to check alone. `messages` are archived messages. `until` is the watermark,
    `visible` the pg_snapshot of the unarchived rows. `report` is about the archive's files; the
    frames lack the rows of damaged files.
    """

    known: "DataFrame"
    judged: "DataFrame"
    holds: "DataFrame"
    messages: "DataFrame"
    files: dict[str, list[File]]
    report: FileReport
    until: datetime | None
    visible: str


@dataclass(frozen=True, slots=True)
class ArchivedRows:
    """The rows of the archive to check, in the files of the day of `since` and of later days.

    Some of `read_again` are there for the order of lanes only.
    """

    messages: "DataFrame"
    deliveries: "DataFrame"
    attempts: "DataFrame"
    since: datetime
    read_again: "DataFrame | None" = None


@contextmanager
def checked_history(job: StepJob, proof: HistoryProof | None) -> Iterator[CheckedHistory]:
    """Yield the whole history, or the rest after the proof; raises ProofLostError."""
    with ExitStack() as kept:
        unarchived = read_unarchived_rows(job, kept, proof)
        job.progress.doing("reading the archive")
        report = _looked_at(job, unarchived, proof)
        files = report.sound
        reader = ArchiveReader(job, files)
        archived = (
            reader.everything() if proof is None else reader.since(proof, unarchived, kept=kept)
        )
        holds = _holds(job, unarchived, reader, archived.deliveries, kept=kept)
        # Not before the holds, which are few rows.
        rows = _most_rows(files, since=archived.since) + unarchived.deliveries.count()
        kept.enter_context(frames.partitioned_for(job.spark, rows))
        # Computed by the first reading check.
        known = kept.enter_context(
            frames.kept_frame(
                known_deliveries(archived.deliveries, archived.attempts, unarchived.deliveries),
                is_needed_now=False,
            )
        )
        again = archived.read_again
        yield CheckedHistory(
            known=known,
            judged=known if again is None else judged_deliveries(known, again),
            holds=holds,
            messages=archived.messages,
            files=unarchived.files,
            report=report,
            until=unarchived.until,
            visible=unarchived.visible,
        )


def _looked_at(job: StepJob, unarchived: UnarchivedRows, proof: HistoryProof | None) -> FileReport:
    """Return the state of the archive's files; raises ProofLostError if there is a proof."""
    report = look_at_folder(job.archive, job.database, unarchived.files)
    if proof is None:
        look_into_files(job, report)
        compare_kept_rows(job, report, unarchived.files, until=unarchived.until)
        report.losses += lost_rows(unarchived.files, unarchived.exported)
    else:
        report.require_sound()
    return report


@dataclass(frozen=True, slots=True)
class ArchiveReader:
    """Reads the archive's valid files of a snapshot."""

    job: StepJob
    files: dict[str, list[File]]

    def rows(self, table: Table, *, since: datetime = EVER) -> "DataFrame":
        """Return the rows of a table, of the day of `since` and of later days."""
        files = [file for file in self.files[table.name] if file.day >= since.date()]
        names = _NEEDED.get(table.name, ())
        return self.job.read_files(table, files, names=names)

    def everything(self) -> ArchivedRows:
        return ArchivedRows(
            self.rows(schemas.MESSAGES).select("id", "owed"),
            self.rows(schemas.DELIVERIES),
            self.rows(schemas.ATTEMPTS),
            EVER,
        )

    def since(
        self, proof: HistoryProof, unarchived: UnarchivedRows, *, kept: ExitStack
    ) -> ArchivedRows:
        """Return the rows since the proof, and the earlier rows related to them."""
        from pyspark.sql import functions as sql

        until = proof.until
        is_new, is_old = sql.col("settled_at") >= until, sql.col("settled_at") < until
        new = self.rows(schemas.DELIVERIES, since=until).filter(is_new)
        touched = kept.enter_context(
            frames.kept_frame(touched_rows(new, unarchived.deliveries, until=until))
        )
        since = min(_first_published(touched) or until, until) - _CLOCK_BACK
        old = self.rows(schemas.DELIVERIES, since=since).filter(is_old)
        again = kept.enter_context(
            frames.kept_frame(rows_read_again(old, touched, until=until), is_needed_now=False)
        )
        attempts = self.rows(schemas.ATTEMPTS, since=since)
        ids = again.select(again.id.alias("delivery_id")).distinct()
        messages = self.rows(schemas.MESSAGES, since=since)
        earlier = messages.filter(sql.col("published_at") < until).join(
            touched.select(touched.message_id.alias("id")).distinct(), "id", "left_semi"
        )
        return ArchivedRows(
            messages.filter(sql.col("published_at") >= until)
            .unionByName(earlier)
            .select("id", "owed"),
            new.unionByName(again.drop("is_judged")),
            attempts.filter(is_new).unionByName(
                attempts.filter(is_old).join(ids, "delivery_id", "left_semi")
            ),
            since,
            again,
        )


def _most_rows(files: dict[str, list[File]], *, since: datetime) -> int:
    """Return the rows of the largest table in the files of the day of `since` and of later days."""
    return max(
        sum(file.rows for file in files[table.name] if file.day >= since.date())
        for table in (schemas.MESSAGES, schemas.DELIVERIES, schemas.ATTEMPTS)
    )


def _first_published(touched: "DataFrame") -> datetime | None:
    from pyspark.sql import functions as sql

    # As a number: Spark returns times without a time zone.
    row = touched.agg(sql.unix_micros(sql.min("published_at")).alias("at")).first()
    assert row is not None
    return None if row["at"] is None else _EPOCH + row["at"] * _MICROSECOND


def _holds(
    job: StepJob,
    unarchived: UnarchivedRows,
    reader: ArchiveReader,
    deliveries: "DataFrame",
    *,
    kept: ExitStack,
) -> "DataFrame":
    """Return the times of holds, from the whole journal: a hold may have begun long ago."""
    from pyspark.sql import functions as sql

    journal = kept.enter_context(
        frames.kept_frame(
            hold_entries(reader.rows(schemas.JOURNAL).unionByName(unarchived.journal)),
            is_needed_now=False,
        )
    )
    row = journal.agg(
        sql.count_if(is_about_url()).alias("urls"), sql.count_if(is_about_many()).alias("many")
    ).first()
    assert row is not None
    owners = _owners(job, unarchived, deliveries if row["many"] else None)
    urls = _places(job, unarchived, deliveries if row["urls"] else None)
    return kept.enter_context(frames.kept_frame(times_of_holds(journal, urls, owners)))


def _places(
    job: StepJob, unarchived: UnarchivedRows, deliveries: "DataFrame | None"
) -> "DataFrame":
    """Return the current URLs of deliveries, and the earlier URLs if any URL was ever stopped.

    `deliveries` is None if none was.
    """
    now = frames.frame_of_rows(job.spark, _PLACES, unarchived.places)
    if deliveries is None:
        return places(now)
    return places(now.unionByName(deliveries.select("subscription_id", "endpoint")))


def _owners(
    job: StepJob, unarchived: UnarchivedRows, deliveries: "DataFrame | None"
) -> "DataFrame":
    """Return the owners of subscriptions, current and earlier.

    `deliveries` is None if no subscriber, nor all sending, was ever held: then earlier owners do
    not matter.
    """
    now = frames.frame_of_rows(job.spark, _OWNERS, unarchived.owners)
    if deliveries is None:
        return now
    return now.unionByName(deliveries.select("subscription_id", "subscriber_id")).distinct()
