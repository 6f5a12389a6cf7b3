"""A check of the archive: whether this machine reaches the right archive, with all files."""

from typing import Any

import psycopg
from django.db import connection

from delivery.database.statements import statement
from delivery.history.archive.identity import ledger_identity, require_archive
from delivery.history.archive.small_files import ArchiveError, call_storage, file_sizes
from delivery.management.doctor.findings import CheckResult, Severity

# Tens of thousands of files at a store.
_SECONDS = 120.0


def check_archive(url: str) -> CheckResult:
    """Compare the files at HISTORY_URL with the ledger, by name and size."""
    connection.ensure_connection()
    database: psycopg.Connection[Any] = connection.connection
    try:
        require_archive(database, url)
        expected = dict(database.execute(statement("archive_sizes")).fetchall())
        found = call_storage(url, lambda: file_sizes(url, list(expected)), seconds=_SECONDS)
    except ArchiveError as error:
        return _failed(str(error))
    lost = [path for path, size in expected.items() if found[path] != size]
    if lost:
        return _failed(
            f"of {len(expected):,} files at {url}, {len(lost):,} are not there with their size, "
            f"such as {lost[0]}"
        )
    uuid = ledger_identity(database).uuid
    return CheckResult(
        check="archive",
        severity=Severity.OK,
        text=f"{len(expected):,} files at {url}, {uuid or 'which begins with the first export'}",
    )


def _failed(text: str) -> CheckResult:
    return CheckResult(
        check="archive",
        severity=Severity.FAILED,
        text=text,
        advice="Until it is there, retention keeps the messages. See `manage.py history archive`.",
    )
