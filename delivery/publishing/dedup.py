"""Dedup: a subscription with dedup gets a message once, although it is published again.

The subscription identifies a message by Idempotency-Key, or by the value at a path of the filter
language; a message with neither is never a duplicate. Within the window of the first:

    the first is …                              the second is …
    PENDING, IN_FLIGHT or IN_DOUBT              IN_DOUBT: a person decides
    DELIVERED                                   DUPLICATE
    settled without having been delivered       new, and the first from now on

The verdict is part of the storing transaction of the message, so no sender ever sees a second
message PENDING. Two publishers with the same key at the same moment meet at the key's unique row:
the later waits there until the earlier has committed, and then finds the delivery. The end of a
window is noticed when the key is used again; no purge is needed.
"""

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from delivery.database import queries
from subscriptions.filters import Document, FilterError, identity_at, parse_path
from subscriptions.matching.candidates import Candidate
from subscriptions.models import DedupMode

IDEMPOTENCY_KEY = "idempotency-key"


@dataclass(frozen=True, slots=True)
class Keyed:
    """A stored message, and the key for a subscription."""

    message_id: int
    subscription_id: int
    key: bytes


def dedup_keys(matched: Iterable[Candidate], document: Document) -> list[tuple[Candidate, bytes]]:
    """Return the candidates with an identifying key in the message, with their keys.

    A SHADOW candidate has none: an unsent message is no first message.
    """
    pairs = [
        (candidate, dedup_key(candidate, document))
        for candidate in matched
        if not candidate.is_shadow
    ]
    return [(candidate, key) for candidate, key in pairs if key is not None]


def dedup_key(candidate: Candidate, document: Document) -> bytes | None:
    """Return the 32 bytes by which the subscription identifies the message; None without a key."""
    match candidate.dedup_mode:
        case DedupMode.KEY:
            sent = (
                document.header.get(IDEMPOTENCY_KEY) if isinstance(document.header, dict) else None
            )
            return _digest("key", sent) if isinstance(sent, str) else None
        case DedupMode.PATH:
            value = identity_at_path(candidate.dedup_path)(document)
            return None if value is None else _digest("path", value)
        case _:
            return None


def key_of_text(candidate: Candidate, text: str) -> bytes | None:
    """Return the same for a message of which only the identifying text is known.

    None if the text is not enough: `dedup_path` may end in `->>`, which gives texts, or in `->`.
    """
    match candidate.dedup_mode:
        case DedupMode.KEY:
            return _digest("key", text)
        case DedupMode.PATH if _gives_text(candidate.dedup_path):
            return _digest("path", text)
        case _:
            return None


def known_keys(keyed: Sequence[tuple[int, bytes]]) -> set[tuple[int, bytes]]:
    """Return those keys of subscriptions whose next message would not count as new."""
    if not keyed:
        return set()
    subscriptions, digests = zip(*keyed, strict=True)
    columns = {"subscription": list(subscriptions), "key": list(digests)}
    return {
        (subscription, bytes(key))
        for subscription, key in queries.rows("known_dedup_keys", columns)
    }


def settle_duplicates(keyed: Sequence[Keyed]) -> None:
    """Settle the duplicates among the deliveries just stored; call it in their transaction.

    Messages of a transaction count in the order of storing.
    """
    if not keyed:
        return
    columns: dict[str, Any] = {
        "message": [delivery.message_id for delivery in keyed],
        "subscription": [delivery.subscription_id for delivery in keyed],
        "key": [delivery.key for delivery in keyed],
    }
    queries.execute_statement("take_dedup_keys", columns)
    queries.execute_statement("settle_duplicates", columns)


@lru_cache(maxsize=1_000)
def identity_at_path(path: str) -> Callable[[Document], str | None]:
    """Return a function for the text at a path; None if there is none."""
    try:
        return identity_at(parse_path(path))
    except FilterError:
        # Such a path is refused on saving; however it was stored, messages are delivered rather
        # than lost.
        return lambda _: None


def _gives_text(path: str) -> bool:
    try:
        return parse_path(path).is_text
    except FilterError:
        return False


def _digest(kind: str, value: str) -> bytes:
    return hashlib.sha256(f"{kind}\0{value}".encode()).digest()
