"""`import delivered`: messages delivered by an old broker, as dedup keys.

README.md has the races and crash windows.
"""

from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

from django.conf import settings
from django.db import transaction

from delivery.database import queries
from delivery.lifecycle.transitions import settle_as_duplicates
from delivery.management.importing.lines import ImportLineError, Line, read_lines
from delivery.management.importing.old_messages import (
    NamedObjects,
    body_in,
    headers_in,
    key_of_line,
    moment_of,
    names_of_line,
)
from delivery.management.importing.takeover_report import TakenOver
from delivery.models import DedupKey
from delivery.publishing import dedup
from delivery.states import OPEN
from subscriptions.filters import document
from subscriptions.matching.candidates import Candidate

FIELDS = frozenset({"key", "headers", "body", "body_base64", "delivered_at", "subscriptions"})
BATCH_KEYS = 1000
REASON = "the old broker delivered it"

_FORGOTTEN = "keys left out, because they are older than the subscription's dedup_window_seconds"
_DUPLICATE = "waiting deliveries of Inturn that became DUPLICATE, and will not be sent"
_EARLIER = "keys left out, because they were imported before"
_BOTH = "keys left out, because Inturn has delivered the message as well"


@dataclass(frozen=True, slots=True)
class DeliveredKey:
    subscription_id: int
    key: bytes
    seen_at: datetime


@dataclass(slots=True)
class Delivered:
    """A file of deliveries by the old broker. A time after `now` counts as `now`."""

    path: Path
    now: datetime
    _objects: NamedObjects = field(default_factory=NamedObjects)

    def check(self) -> TakenOver:
        """Return the report of an import, and change nothing. Raise OSError."""
        found = TakenOver()
        for batch in self._batches(found):
            places = {(key.subscription_id, key.key) for key in batch}
            _count(places, _imported(places), found)
        return found

    def apply(self, *, progress: Callable[[TakenOver], object]) -> TakenOver:
        """Import the valid lines, a thousand keys in a transaction. Raise OSError."""
        found = TakenOver()
        for batch in self._batches(found):
            with transaction.atomic():
                _remember(batch, found)
            progress(found)
        return found

    def _batches(self, found: TakenOver) -> Iterator[list[DeliveredKey]]:
        batch: list[DeliveredKey] = []
        max_bytes = 2 * settings.ENVIRONMENT.max_message_bytes + 100_000
        for line in read_lines(self.path, known=FIELDS, max_bytes=max_bytes):
            found.lines += 1
            try:
                batch += self._keys(line, found)
            except ImportLineError as error:
                found.refuse(error)
            if len(batch) >= BATCH_KEYS:
                yield batch
                batch = []
        if batch:
            yield batch

    def _keys(self, line: Line | ImportLineError, found: TakenOver) -> list[DeliveredKey]:
        if isinstance(line, ImportLineError):
            raise line
        names = names_of_line(line)
        if names is None:
            raise ImportLineError(
                line.number, "subscriptions: list the subscriptions that have got it."
            )
        seen_at = min(moment_of(line, "delivered_at") or self.now, self.now)
        keys: list[DeliveredKey] = []
        for name in names:
            candidate = self._objects.subscription(line, name)
            key = _key_of(line, name, candidate)
            if seen_at <= self.now - timedelta(seconds=self._objects.window_seconds(name)):
                found.counted[_FORGOTTEN] += 1
            else:
                keys.append(DeliveredKey(candidate.subscription_id, key, seen_at))
        return keys


def _key_of(line: Line, name: str, candidate: Candidate) -> bytes:
    if not candidate.deduplicates:
        detail = f"{name} does not look for duplicates: set its dedup_mode to KEY or PATH first."
        raise ImportLineError(line.number, detail)
    if {"body", "body_base64", "headers"} & line.fields.keys():
        headers = headers_in(line)
        if "key" in line.fields:
            headers.setdefault(dedup.IDEMPOTENCY_KEY, key_of_line(line))
        has_body = {"body", "body_base64"} & line.fields.keys()
        key = dedup.dedup_key(candidate, document(headers, body_in(line)[0] if has_body else b""))
        advice = (
            f"it has no value at {candidate.dedup_path or 'Idempotency-Key'}, "
            f"by which {name} finds duplicates."
        )
    else:
        key = dedup.key_of_text(candidate, key_of_line(line))
        advice = (
            f"{name} finds duplicates by {candidate.dedup_path}: "
            "write headers and body of the message, too."
        )
    if key is None:
        raise ImportLineError(line.number, advice)
    return key


def _remember(batch: Sequence[DeliveredKey], found: TakenOver) -> None:
    """Store the keys; call it in a transaction."""
    times = {(key.subscription_id, key.key): key.seen_at for key in batch}
    known = {
        (subscription_id, bytes(key)): delivery_id
        for subscription_id, key, delivery_id in queries.rows(
            "take_delivered_keys", _columns(times)
        )
    }
    here = [id for id in known.values() if id]
    statuses = dict(queries.rows("first_deliveries", {"delivery": here})) if here else {}
    waiting = [id for id, status in statuses.items() if status in OPEN]
    if settled := settle_as_duplicates(waiting, reason=REASON):
        found.counted[_DUPLICATE] += settled
    both = {place for place, id in known.items() if statuses.get(id) in ("DELIVERED", "REDUNDANT")}
    if both:
        found.counted[_BOTH] += len(both)
    renewed = {place: times[place] for place, id in known.items() if id and place not in both}
    if renewed:
        queries.execute_statement("remember_delivered", _columns(renewed))
    _count(times.keys() - both, {place for place, id in known.items() if not id}, found)


def _count(
    places: Set[tuple[int, bytes]], earlier: Set[tuple[int, bytes]], found: TakenOver
) -> None:
    """Count the keys taken over, and those left out because an earlier import took them."""
    if earlier:
        found.counted[_EARLIER] += len(earlier)
    found.of_subscription.update(id for id, _ in places - earlier)


def _imported(places: Set[tuple[int, bytes]]) -> set[tuple[int, bytes]]:
    """Return the subscriptions' keys imported before."""
    rows = DedupKey.objects.filter(
        subscription_id__in={id for id, _ in places},
        key__in=[key for _, key in places],
        delivery_id=0,
    )
    imported = {(id, bytes(key)) for id, key in rows.values_list("subscription_id", "key")}
    return imported & places


def _columns(times: dict[tuple[int, bytes], datetime]) -> dict[str, list[object]]:
    return {
        "subscription": [id for id, _ in times],
        "key": [key for _, key in times],
        "seen_at": list(times.values()),
    }
