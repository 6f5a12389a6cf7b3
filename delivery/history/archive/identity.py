"""The identity of the archive: a UUID in a file at the root, and the same UUID in the ledger.

So a wrong `HISTORY_URL`, a missing mount or an emptied folder is no archive: nothing is read from
it, written to it, or removed from PostgreSQL because of it.

Only an export writes the UUID, under the export's lock. A kill between the two writes leaves a row
of this table from which the next export continues.

    ledger   its files   file   an export                                everybody else
    ───────  ─────────   ────   ──────────────────────────────────────   ──────────────────────────
    none     none        none   writes the ledger, then the file         has nothing to read
    none     none        V      refuses: another installation's          has nothing to read
    none     some        none   adopts: if all files of the ledger are   reads: no UUID is known yet
                                there, writes the file, then the
                                ledger; else refuses
    none     some        V      adopts V, on the same condition          reads: no UUID is known yet
    U        none        none   writes the file                          has nothing to read
    U        some        none   refuses                                  refuses
    U        any         V      refuses                                  refuses
    U        any         U      continues                                continues

The file appears as a whole or not at all. Two exports of an installation exclude each other by
their lock. If two installations begin in the same place at once, the file keeps one UUID; both read
it again after they wrote, and the installation with another UUID refuses. A copy of the folder
takes the file with it, so an archive is moved by a copy and `HISTORY_URL`. A restored database has
the UUID of the back-up, which is the archive's.
"""

from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

import orjson
import psycopg

from delivery.database.statements import statement
from delivery.history.archive import small_files
from delivery.history.archive.small_files import ArchiveError, call_storage

# Spark and most readers of Parquet ignore names beginning with an underscore.
IDENTITY = "_inturn.json"
_ABOUT = "The identity of this archive of Inturn. Copy it with the archive, and never change it."
_MOVED = (
    "If its storage is not mounted, mount it. If the archive was moved, set HISTORY_URL to its "
    "place, on every machine. If it is lost, `manage.py history archive` says what that means, and "
    "how to begin a new archive."
)


class WrongArchiveError(ArchiveError):
    """The archive at HISTORY_URL is not the ledger's; the message has advice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """The UUID in the ledger, None before the first export, and whether the ledger has files."""

    uuid: UUID | None
    has_files: bool


def ledger_identity(database: psycopg.Connection[Any]) -> Identity:
    row = database.execute(statement("archive_identity")).fetchone()
    assert row is not None
    return Identity(uuid=row[0], has_files=row[1])


def require_archive(database: psycopg.Connection[Any], url: str) -> None:
    """Raise WrongArchiveError unless the archive at this URL is the ledger's.

    If the storage does not answer, raises NoAnswerFromStorageError.
    """
    known = ledger_identity(database)
    if known.uuid is not None:
        found = identity_at(url)
        if found != known.uuid and (known.has_files or found is not None):
            raise WrongArchiveError(_refusal(url, known.uuid, found))


def claim_archive(database: psycopg.Connection[Any], url: str) -> None:
    """Give the archive an identity, unless it has one; raises as `require_archive` does.

    Call it under the lock of the export.
    """
    known, found = ledger_identity(database), identity_at(url)
    uuid = known.uuid
    if uuid is None and known.has_files:
        _require_all_files(database, url)
        found = found or _written(url, uuid4())
        uuid = _stored(database, found)
    elif uuid is None:
        if found is not None:
            raise WrongArchiveError(
                f"HISTORY_URL is {url}, and the archive there ({found}) belongs to another "
                "installation, or to an earlier database of this one. Choose an empty place, or "
                "restore the database that the archive belongs to."
            )
        uuid = _stored(database, uuid4())
    if found is None and not known.has_files:
        found = _written(url, uuid)
    if found != uuid:
        raise WrongArchiveError(_refusal(url, uuid, found))


def _stored(database: psycopg.Connection[Any], uuid: UUID) -> UUID:
    """Store the UUID in the ledger, and return the ledger's UUID."""
    row = database.execute(statement("archive_identify"), {"uuid": uuid}).fetchone()
    assert row is not None
    stored: UUID = row[0]
    return stored


def _written(url: str, uuid: UUID) -> UUID:
    """Write the UUID to the place, and return the UUID there."""
    content = orjson.dumps({"archive": str(uuid), "about": _ABOUT}) + b"\n"
    call_storage(url, lambda: small_files.create_file(url, IDENTITY, content))
    found = identity_at(url)
    if found is None:
        raise WrongArchiveError(f"{url}/{IDENTITY} was written, and is not there. {_MOVED}")
    return found


def identity_at(url: str) -> UUID | None:
    """Return the UUID of the archive in this place; None if no archive is there."""
    content = call_storage(url, lambda: small_files.read_file(url, IDENTITY))
    if content is None:
        return None
    try:
        return UUID(orjson.loads(content)["archive"])
    except (ValueError, KeyError, TypeError, AttributeError):
        raise WrongArchiveError(
            f"{url}/{IDENTITY} is damaged: it does not have the UUID of an archive. "
            "Copy it from a back-up of the archive."
        ) from None


def _require_all_files(database: psycopg.Connection[Any], url: str) -> None:
    """Raise WrongArchiveError unless all files of a ledger without a UUID are there."""
    sizes = dict(database.execute(statement("archive_sizes")).fetchall())
    found = call_storage(url, lambda: small_files.file_sizes(url, list(sizes)), seconds=600.0)
    lost = [path for path, size in sizes.items() if found[path] != size]
    if lost:
        raise WrongArchiveError(
            f"HISTORY_URL is {url}, and {len(lost):,} of the archive's {len(sizes):,} files are "
            f"not there with their size, such as {lost[0]}. {_MOVED}"
        )


def _refusal(url: str, expected: UUID, found: UUID | None) -> str:
    there = f"the archive there is {found}" if found else f"no archive is there (no {IDENTITY})"
    return (
        f"HISTORY_URL is {url}, and {there}; this installation's archive is {expected}. "
        f"Nothing was read, written or removed. {_MOVED}"
    )
