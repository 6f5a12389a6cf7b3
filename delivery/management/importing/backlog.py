"""`import backlog`: messages accepted by an old broker and not yet delivered.

README.md has the races and crash windows.
"""

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction

from delivery.database import queries
from delivery.management.importing.backlog_lines import BacklogLines, OldMessage
from delivery.management.importing.lines import ImportLineError
from delivery.management.importing.reservation import NoRoomError, take_ids
from delivery.management.importing.takeover_report import TakenOver
from delivery.models import ImportedKey, MessageReservation
from delivery.publishing import dedup
from delivery.publishing.owed_deliveries import Owed
from delivery.publishing.publish import complete_messages, match_drafts
from delivery.publishing.stored_messages import store_messages
from subscriptions.filters import document
from subscriptions.matching.candidates import Candidate

BATCH_LINES = 500
BATCH_BYTES = 4 * 1024 * 1024

_EARLIER = "lines published before the line above (the order of the file counts)"
_HERE = (
    "deliveries left out, because Inturn has a message with the same dedup key, "
    "or knows that the old broker delivered it"
)


class ImportRefusedError(Exception):
    """Nothing more is imported; the message has the reason and the remedy."""


@dataclass(slots=True)
class Backlog:
    lines: BacklogLines

    def check(self) -> TakenOver:
        """Return the report of an import, and change nothing. Raise OSError."""
        found = TakenOver()
        with closing(_KeysOfFile()) as keys:
            for batch in self._batches(found):
                first = [message for message in batch if _is_first(message, keys, found)]
                _count(found, [owed for _, owed in _owed(_not_imported(first, found), found)])
        return found

    def apply(
        self, reservation: MessageReservation | None, *, progress: Callable[[TakenOver], object]
    ) -> TakenOver:
        """Import the valid lines, some hundred a transaction. Raise ImportRefusedError, OSError."""
        found = TakenOver()
        for batch in self._batches(found):
            with transaction.atomic():
                new = _not_imported(_first_of_keys(batch, found), found)
                owed = _taken(_owed(new, found), found)
                _store([message for message in owed if message.matches], reservation)
            _count(found, owed)
            progress(found)
        return found

    def _batches(self, found: TakenOver) -> Iterator[list[OldMessage]]:
        batch: list[OldMessage] = []
        size = 0
        last: datetime | None = None
        for message in self.lines.messages():
            found.lines += 1
            if isinstance(message, ImportLineError):
                found.refuse(message)
                continue
            if last and message.published_at and message.published_at < last:
                found.counted[_EARLIER] += 1
            last = message.published_at or last
            batch.append(message)
            size += len(message.draft.body)
            if len(batch) == BATCH_LINES or size > BATCH_BYTES:
                yield batch
                batch, size = [], 0
        if batch:
            yield batch


def _owed(messages: Sequence[OldMessage], found: TakenOver) -> list[tuple[OldMessage, Owed]]:
    """Return the messages with the deliveries they still owe, perhaps none."""
    wanted = [message.draft for message in messages if message.named is None]
    qualifying = iter(match_drafts(wanted))
    matches = [next(qualifying) if message.named is None else message.named for message in messages]
    keyed = [
        (candidate.subscription_id, key)
        for message, candidates in zip(messages, matches, strict=True)
        for candidate, key in _keys(message, candidates)
    ]
    known = dedup.known_keys(keyed)
    owed: list[tuple[OldMessage, Owed]] = []
    for message, candidates in zip(messages, matches, strict=True):
        here = {
            candidate.subscription_id
            for candidate, key in _keys(message, candidates)
            if (candidate.subscription_id, key) in known
        }
        left = [candidate for candidate in candidates if candidate.subscription_id not in here]
        if here:
            found.counted[_HERE] += len(here)
        if candidates:
            owed.append((message, Owed(message.publisher.pk, message.draft, left)))
        else:
            found.refuse(ImportLineError(message.number, _NOBODY))
    return owed


def _store(owed: Sequence[Owed], reservation: MessageReservation | None) -> None:
    """Store the messages, and notify the senders after the commit. Raise ImportRefusedError."""
    ids: Sequence[int] = ()
    if reservation is not None and owed:
        try:
            ids = take_ids(reservation, len(owed))
        except NoRoomError:
            raise ImportRefusedError(
                f"Another import has used the reserved places. {_REPEAT}"
            ) from None
    stored = store_messages(owed, ids=ids)
    if stored is None:
        raise ImportRefusedError(f"A subscription was deleted meanwhile. {_REPEAT}")
    accepted, work = stored
    complete_messages(
        [answer for answer in accepted if answer is not None],
        [(message.draft, list(message.matches)) for message in owed],
    )
    transaction.on_commit(work.notify)


_REPEAT = "Repeat the command: it goes on where it ended."
_NOBODY = (
    "no subscription matches that is not INACTIVE. List the subscriptions that are owed it as "
    "`subscriptions`, make them HELD, or leave the line out."
)


class _KeysOfFile:
    """The keys of a file with their lines, in a temporary file of SQLite."""

    def __init__(self) -> None:
        self._database = sqlite3.connect("")
        self._database.execute(
            "CREATE TABLE keys (key BLOB PRIMARY KEY, digest BLOB, line INT) WITHOUT ROWID"
        )

    def first_of(self, message: OldMessage) -> tuple[bytes, int]:
        """Return digest and line of the first message with the same key, perhaps this message."""
        row = message.key, message.digest, message.number
        if self._database.execute("INSERT OR IGNORE INTO keys VALUES (?, ?, ?)", row).rowcount:
            return message.digest, message.number
        found: tuple[bytes, int] = self._database.execute(
            "SELECT digest, line FROM keys WHERE key = ?", (message.key,)
        ).fetchone()
        return found

    def close(self) -> None:
        self._database.close()


def _is_first(message: OldMessage, keys: _KeysOfFile, found: TakenOver) -> bool:
    digest, number = keys.first_of(message)
    if number == message.number:
        return True
    if digest == message.digest:
        found.repeated += 1
    else:
        detail = (
            f"line {number} has the same key and differs. Write one line a message, "
            "with all its subscriptions."
        )
        found.refuse(ImportLineError(message.number, detail))
    return False


def _first_of_keys(batch: Sequence[OldMessage], found: TakenOver) -> list[OldMessage]:
    """Return the first message of each key in a batch."""
    first: dict[bytes, OldMessage] = {}
    for message in batch:
        if first.setdefault(message.key, message) is not message:
            found.repeated += 1
    return list(first.values())


def _taken(owed: Sequence[tuple[OldMessage, Owed]], found: TakenOver) -> list[Owed]:
    """Take the messages' keys, and return those not taken by another import meanwhile."""
    if not owed:
        return []
    columns = {
        "key": [message.key for message, _ in owed],
        "digest": [message.digest for message, _ in owed],
    }
    taken = {bytes(key) for (key,) in queries.rows("take_imported_keys", columns)}
    found.earlier += len(owed) - len(taken)
    return [wanted for message, wanted in owed if message.key in taken]


_ANOTHER = (
    "another message with this key was imported before. Keys must be unique in the old broker: "
    "give files of several brokers different names by --source."
)


def _not_imported(messages: Sequence[OldMessage], found: TakenOver) -> list[OldMessage]:
    """Return the messages not imported before, and count the others."""
    rows = ImportedKey.objects.filter(
        key__in=[imported_message.key for imported_message in messages]
    )
    imported = {bytes(row.key): bytes(row.digest) for row in rows}
    new: list[OldMessage] = []
    for message in messages:
        match imported.get(message.key):
            case None:
                new.append(message)
            case digest if digest == message.digest:
                found.earlier += 1
            case _:
                found.refuse(ImportLineError(message.number, _ANOTHER))
    return new


def _keys(message: OldMessage, candidates: Sequence[Candidate]) -> list[tuple[Candidate, bytes]]:
    if not any(candidate.deduplicates for candidate in candidates):
        return []
    return dedup.dedup_keys(candidates, document(message.draft.headers, message.draft.body))


def _count(found: TakenOver, owed: Sequence[Owed]) -> None:
    found.messages += sum(1 for message in owed if message.matches)
    for message in owed:
        found.of_subscription.update(match.subscription_id for match in message.matches)
