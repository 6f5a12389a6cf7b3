"""A proof: the part of the history proven by a verification, for the next to build on.

It is part of the result of the run, and so it exists if and only if the run is DONE. It covers the
archive's rows before `until`. Rows not archived then are checked again by the next run, which also
counts it: nothing of it may be missing.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self

import psycopg

from delivery.database.statements import statement
from delivery.history.archive.ledger import File

# The version of the rules: a proof by other rules does not count. Increase it with each change by
# which a check finds more.
RULES = 4


class ProofLostError(Exception):
    """The archive lacks rows since the proof; the message says so."""


@dataclass(frozen=True, slots=True)
class DeliverySet:
    """A set of deliveries: their number, and the XOR of their ids' hashes (Spark's xxhash64)."""

    deliveries: int = 0
    checksum: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryProof:
    """The proof of run `run_id`.

    `snapshot` is the pg_snapshot of PostgreSQL's rows as read. `rows` are the archive's rows by
    table. `unarchived` are the deliveries without a row in the archive, except those of replays and
    those whose message has no transaction.
    """

    run_id: int
    until: datetime
    snapshot: str
    rows: Mapping[str, int]
    unarchived: DeliverySet

    def holds(
        self,
        files: Mapping[str, Iterable[File]],
        *,
        until: datetime | None,
        added: Mapping[str, int],
    ) -> bool:
        """Return whether the archive, of these files, has all expected rows.

        `until` is its watermark; `added` are the rows by table that were exported since the proof.
        """
        if until is None or until < self.until:
            return False
        return row_counts(files) == {
            table: self.rows.get(table, 0) + added.get(table, 0) for table in files
        }

    def as_json(self) -> dict[str, Any]:
        return {
            "rules": RULES,
            "until": self.until.isoformat(),
            "snapshot": self.snapshot,
            "rows": dict(self.rows),
            "unarchived": [self.unarchived.deliveries, self.unarchived.checksum],
        }

    @classmethod
    def of_json(cls, run_id: int, values: Mapping[str, Any]) -> Self | None:
        """Return the proof; None if it was made by other rules."""
        if values.get("rules") != RULES:
            return None
        return cls(
            run_id=run_id,
            until=datetime.fromisoformat(values["until"]),
            snapshot=values["snapshot"],
            rows=values["rows"],
            unarchived=DeliverySet(*values["unarchived"]),
        )


def last_proof(database: psycopg.Connection[Any]) -> HistoryProof | None:
    """Return the proof of the newest verification that ended; None if that proved nothing.

    So after a finding each run checks the whole history, until it is proven again.
    """
    row = database.execute(statement("last_proof")).fetchone()
    return None if row is None or row[1] is None else HistoryProof.of_json(*row)


def row_counts(files: Mapping[str, Iterable[File]]) -> dict[str, int]:
    """Return the number of rows of these files by table."""
    return {table: sum(file.rows for file in found) for table, found in files.items()}
