"""A look at the archive's files before retention removes rows, which are there alone then.

The watermark proves that rows were archived; the files may be lost since. So retention asks the
storage for the files with the rows, by the ledger, and for the archive's UUID. It removes nothing
unless all of them are there, with their sizes. A late answer of the storage is no answer: see
`delivery.history.archive.small_files`.
"""

from datetime import datetime
from typing import Any

import psycopg
from django.conf import settings
from django.db import connection

from delivery.database.statements import statement
from delivery.history.archive.identity import require_archive
from delivery.history.archive.small_files import ArchiveError, call_storage, file_sizes
from delivery.models.delivery import delivery_id


class FilesLostError(ArchiveError):
    """Files of the archive are not there with their sizes; the message names the first."""


def require_files_of_messages(first_id: int, last_id: int) -> None:
    """Raise ArchiveError unless the archive has the files with rows of these messages."""
    _require(
        "archive_files_of_messages",
        {
            "first": first_id,
            "last": last_id,
            "first_delivery": delivery_id(first_id, 0),
            "until_delivery": delivery_id(last_id + 1, 0),
        },
    )


def require_files_of_journal(*, until: datetime) -> None:
    """Raise ArchiveError unless the archive has the files with the journal's oldest entries."""
    _require("archive_files_of_journal", {"until": until})


def _require(name: str, parameters: dict[str, Any]) -> None:
    connection.ensure_connection()
    database: psycopg.Connection[Any] = connection.connection
    url: str = settings.ENVIRONMENT.history_url
    require_archive(database, url)
    lost = _lost(database, url, name, parameters)
    # A compaction replaces files in the ledger before it removes them: look into the ledger again.
    if lost and (lost := _lost(database, url, name, parameters)):
        path, size = next(iter(lost.items()))
        found = "is not there" if size is None else f"has {size:,} bytes, not as it was written"
        raise FilesLostError(
            f"{path} of the archive at {url} {found} ({len(lost):,} such files). Rows that are in "
            "PostgreSQL and in such files stay. Copy the files from a back-up of the archive; "
            "`manage.py history verify --whole` lists all damage."
        )


def _lost(
    database: psycopg.Connection[Any], url: str, name: str, parameters: dict[str, Any]
) -> dict[str, int | None]:
    expected = dict(database.execute(statement(name), parameters).fetchall())
    if not expected:
        return {}
    found = call_storage(url, lambda: file_sizes(url, list(expected)))
    return {path: found[path] for path, size in expected.items() if found[path] != size}
