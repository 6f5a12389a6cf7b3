"""Unarchived rows of PostgreSQL, and the archive's files, in a snapshot."""

from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from delivery.database.statements import statement
from delivery.history import schemas
from delivery.history.archive import ledger
from delivery.history.archive.ledger import File
from delivery.history.archive.proof import HistoryProof, ProofLostError
from delivery.history.job import StepJob
from delivery.history.postgres.unarchived_rows import EVER, Rest
from delivery.history.postgres.window import open_snapshot
from delivery.history.spark import frames

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True, kw_only=True)
class UnarchivedRows:
    """Unarchived rows of a PostgreSQL snapshot, kept by Spark, and the archive's valid files.

    `exported` are all rows ever exported, by table.
    """

    until: datetime | None
    visible: str
    deliveries: "DataFrame"
    journal: "DataFrame"
    places: list[tuple[int, str]]
    owners: list[tuple[int, int]]
    files: dict[str, list[File]]
    exported: dict[str, int]


def read_unarchived_rows(
    job: StepJob, kept: ExitStack, proof: HistoryProof | None
) -> UnarchivedRows:
    """Read all input from PostgreSQL in a snapshot; raises ProofLostError.

    End it then: joining the archive may take minutes.
    """
    job.progress.doing("reading unarchived rows")
    with open_snapshot(job.conninfo) as seen:
        until = ledger.archived_until(seen.connection)
        files = {table.name: ledger.files(seen.connection, table.name) for table in schemas.TABLES}
        if proof is not None:
            added = ledger.rows_since(seen.connection, proof.until)
            if not proof.holds(files, until=until, added=added):
                raise ProofLostError(
                    f"the archive's end or number of rows does not agree with the proof of run "
                    f"{proof.run_id}"
                )
        rest = Rest(spark=job.spark, conninfo=job.conninfo, snapshot=seen.name, since=until or EVER)
        names = seen.connection.execute(statement("subscription_names")).fetchall()
        return UnarchivedRows(
            until=until,
            visible=seen.visible,
            deliveries=kept.enter_context(frames.kept_frame(rest.deliveries())),
            journal=kept.enter_context(frames.kept_frame(rest.journal())),
            places=[(subscription_id, endpoint) for subscription_id, *_, endpoint in names],
            owners=[
                (subscription_id, subscriber_id) for subscription_id, subscriber_id, *_ in names
            ],
            files=files,
            exported=ledger.rows_since(seen.connection, EVER),
        )
