"""A committer's cache of keys, event types and subscriptions, and the check of its age.

See *The committers' cache* in `README.md`. Rows of `subscriptions_configurationtransaction` are
removed when they are an hour old, and entries are dropped after MAX_AGE_SECONDS.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass

from django.db import connection

from delivery.database.queries import planned_rows
from delivery.incoming.keys import Grant, grant_of
from delivery.publishing.plain import WhyNotPlain, why_not_plain
from subscriptions.filters import document
from subscriptions.matching.candidates import Candidate, find_candidates
from subscriptions.matching.index import CandidateIndex
from subscriptions.matching.lookups import event_type_by_name
from subscriptions.matching.match import FILTER_STRING, qualifying_candidates
from subscriptions.models import EventType, Kind
from subscriptions.models.api_key import hash_of

# The use of a key is recorded once a minute (`keys.LAST_USED_PRECISION`), when it is
# read.
MAX_AGE_SECONDS = 60.0
MAX_ENTRIES = 10_000
LONGEST_KEPT = 64


@dataclass(frozen=True, slots=True)
class KnownConfiguration:
    """The configuration changes taken into account: numbers of transactions from `horizon` on."""

    horizon: int
    seen: Sequence[int]


@dataclass(frozen=True, slots=True)
class Subscribed:
    """The candidate subscriptions of a message, by event type and FILTER_STRING.

    `always` are those it qualifies for whatever else it holds; None if a filter decides.
    `is_plain`: none of them makes a message not plain.
    """

    candidates: CandidateIndex
    always: Sequence[Candidate] | None
    is_plain: bool


class ConfigurationCache:
    """The cache of a thread, which reads on Django's connection."""

    def __init__(self) -> None:
        self._connection: object = None
        self._began_at = 0.0
        self._known: KnownConfiguration | None = None
        self._grants: dict[str, Grant | None] = {}
        self._event_types: dict[str, EventType | WhyNotPlain] = {}
        self._subscribed: dict[tuple[int, str], Subscribed] = {}

    def known_configuration(self) -> KnownConfiguration:
        """Return the configuration to compare the entries with.

        Old, too many, or another connection's entries are dropped first.
        """
        is_old = time.monotonic() - self._began_at > MAX_AGE_SECONDS
        size = len(self._grants) + len(self._event_types) + len(self._subscribed)
        if (
            self._known is None
            or is_old
            or size > MAX_ENTRIES
            or connection.connection is not self._connection
        ):
            self.forget()
            ((horizon, seen),) = planned_rows("configuration_transactions", {})
            self._connection = connection.connection
            self._began_at = time.monotonic()
            self._known = KnownConfiguration(horizon, seen)
        return self._known

    def forget(self) -> None:
        self._known = None
        self._grants.clear()
        self._event_types.clear()
        self._subscribed.clear()

    def grant(self, key: str) -> Grant | None:
        """Return the grant of a key; None if it may not publish, for whatever reason."""
        hashed = hash_of(key)
        if hashed not in self._grants:
            self._grants[hashed] = grant_of(key)
        return self._grants[hashed]

    def event_type(self, name: str) -> EventType | WhyNotPlain:
        """Return the event type, or why messages of it are not plain."""
        if name not in self._event_types:
            found = event_type_by_name(name)
            self._event_types[name] = (
                WhyNotPlain.NO_EVENT_TYPE
                if found is None
                else why_not_plain(event_type=found) or found
            )
        return self._event_types[name]

    def subscribed(self, event_type: EventType, filter_string: str) -> Subscribed:
        """Return the subscriptions without a header filter string, and those with this string."""
        # A publisher chooses the text: of a long key only a digest is kept.
        is_short = len(filter_string) <= LONGEST_KEPT
        place = event_type.pk, filter_string if is_short else hash_of(filter_string)
        if place not in self._subscribed:
            found = find_candidates(event_type.pk, filter_strings=[filter_string])
            self._subscribed[place] = _subscribed(event_type, filter_string, found)
        return self._subscribed[place]


def _subscribed(
    event_type: EventType, filter_string: str, candidates: Sequence[Candidate]
) -> Subscribed:
    always = None
    if not any(candidate.filter for candidate in candidates):
        is_topic = event_type.kind != Kind.QUEUE
        always = qualifying_candidates(
            candidates, document({FILTER_STRING: filter_string}, b""), by_subscriber=is_topic
        )
    return Subscribed(
        CandidateIndex(candidates),
        always,
        why_not_plain(matches=candidates) is None,
    )
