"""`history archive`: which archive this installation has, and giving up a lost archive."""

from argparse import ArgumentTypeError
from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID

import psycopg
from django.core.management.base import CommandError, CommandParser

from delivery.history.archive import giving_up
from delivery.history.archive.giving_up import GivenUp, NotGivenUpError
from delivery.history.archive.identity import identity_at, ledger_identity, require_archive
from delivery.history.archive.small_files import ArchiveError
from delivery.lifecycle import journal
from delivery.management.terminal_user import terminal_user
from delivery.models import JournalKind, Step
from delivery.pipeline import settings
from delivery.pipeline.locks import is_taken, release_locks, step_lock


def add_archive_arguments(parser: CommandParser) -> None:
    parser.add_argument(
        "--give-up",
        type=_uuid,
        metavar="UUID",
        help="the archive with this UUID is lost: forget it, and begin a new one at HISTORY_URL",
    )


def show_archive(options: dict[str, Any], *, write: Callable[[str], object]) -> None:
    """Write which archive there is and should be, or give it up; raise CommandError."""
    url = settings.archive_url()
    with psycopg.connect(settings.conninfo("inturn archive"), autocommit=True) as database:
        if options["give_up"] is not None:
            _give_up(database, url, options["give_up"], write)
            return
        for line in _lines(database, url):
            write(line)
        try:
            require_archive(database, url)
        except ArchiveError as error:
            known = ledger_identity(database)
            for line in _losses(giving_up.losses_of(database)):
                write(line)
            write(f"  manage.py history archive --give-up {known.uuid}")
            raise CommandError(str(error)) from None


def _lines(database: psycopg.Connection[Any], url: str) -> Iterator[str]:
    known = ledger_identity(database)
    yield f"HISTORY_URL: {url}"
    yield f"this installation's archive: {known.uuid or 'none yet: the first export begins one'}"
    try:
        yield f"the archive there: {identity_at(url) or 'none'}"
    except ArchiveError as error:
        yield f"the archive there: {error}"
    if known.has_files:
        has = giving_up.losses_of(database)
        yield f"files: {has.files:,}, with {has.messages:,} messages, until {has.until}"


def _losses(lost: GivenUp) -> Iterator[str]:
    yield (
        f"If the archive is lost for good, giving it up forgets its {lost.files:,} files. "
        f"Of its {lost.messages:,} messages, {lost.nowhere_else:,} are in no other place: they are "
        "lost with their deliveries and attempts, and can be neither looked up, reported, verified "
        "nor replayed. Everything that is still in PostgreSQL is exported again, to an empty place "
        "at HISTORY_URL. The statistics stay. There is no way back, so look for a copy first."
    )


def _give_up(
    database: psycopg.Connection[Any], url: str, uuid: UUID, write: Callable[[str], object]
) -> None:
    if not is_taken(database, step_lock(Step.EXPORT)):
        raise CommandError("An export is running: stop it, and try again.")
    try:
        lost = giving_up.give_up_archive(database, url, uuid=uuid)
    except (NotGivenUpError, ArchiveError) as error:
        raise CommandError(str(error)) from None
    finally:
        release_locks(database)
    text = (
        f"The archive {uuid} was given up by {terminal_user()}: {lost.files:,} files with "
        f"{lost.messages:,} messages, of which {lost.nowhere_else:,} were in no other place. "
        "The next export begins a new archive."
    )
    journal.record_entry(JournalKind.REMOVED, text)
    write(text)


def _uuid(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise ArgumentTypeError(f"{text!r} is no UUID; `history archive` shows it") from None
