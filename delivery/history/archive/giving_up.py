"""Giving up a lost archive: the next export begins a new archive.

A single transaction forgets the ledger: files, chunks, watermark and UUID. So the next export
archives everything still in PostgreSQL, and retention removes nothing before. A kill before the
commit has changed nothing.

The hours measured from the lost archive stay as they are, because not all of their rows are left to
measure them again: `measured_until` keeps the rollup from them.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import psycopg

from delivery.database.statements import statement
from delivery.history.archive.archive import Archive
from delivery.history.archive.identity import identity_at, ledger_identity
from delivery.history.archive.ledger import try_lock_files
from delivery.history.archive.small_files import call_storage
from delivery.history.schemas import TABLES


class NotGivenUpError(RuntimeError):
    """The archive is not given up; the message says why."""


@dataclass(frozen=True, slots=True)
class GivenUp:
    """The contents of the ledger's archive; `nowhere_else` are messages in it alone."""

    files: int
    messages: int
    nowhere_else: int
    until: datetime | None


def losses_of(database: psycopg.Connection[Any]) -> GivenUp:
    row = database.execute(statement("archive_losses")).fetchone()
    assert row is not None
    return GivenUp(*row)


def give_up_archive(database: psycopg.Connection[Any], url: str, *, uuid: UUID) -> GivenUp:
    """Forget the archive with this UUID; return the loss. Raises NotGivenUpError.

    Call it under the lock of the export. The place at the URL must be empty: files left there would
    be taken for the new archive's.
    """
    if (known := ledger_identity(database).uuid) != uuid:
        raise NotGivenUpError(f"This installation's archive is {known}, not {uuid}.")
    if identity_at(url) == uuid:
        raise NotGivenUpError(
            f"The archive {uuid} is there, at {url}. If files of it are lost, everything else goes "
            "on without them: there is nothing to give up."
        )
    archive = Archive(url)
    left = call_storage(
        url, lambda: [file for table in TABLES for file in archive.parquet(table.name)]
    )
    if left or identity_at(url) is not None:
        raise NotGivenUpError(
            f"A new archive would begin at {url}, and files are there. Move them to another place, "
            "or set HISTORY_URL to an empty place."
        )
    with try_lock_files(database) as is_alone:
        if not is_alone:
            raise NotGivenUpError("A run is reading the archive: stop it, and try again.")
        with database.transaction():
            lost = losses_of(database)
            for name in ("archive_forget_files", "archive_forget"):
                database.execute(statement(name))
    return lost
