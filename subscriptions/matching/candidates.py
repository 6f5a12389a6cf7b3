"""Candidates: the subscriptions that may qualify for a message of an event type."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Any

import psycopg
from django.db import connection

from subscriptions.models import DedupMode, JoinMode, MatchMode, Mode

# Ordered by position within a subscriber, because the first qualifying subscription of a FIRST
# subscriber counts. The index subscription_matching skips other header strings: an event type may
# have thousands, one for each project.
_CANDIDATES = """
    SELECT
        subscription.id AS subscription_id, subscription.subscriber_id,
        subscription.header_filter_string, subscription.filter, subscription.filter_identity,
        subscriber.match_mode, subscription.dedup_mode, subscription.dedup_path, subscription.mode,
        subscriber.by_priority AND subscriber.processing = 'CONCURRENT' AS is_by_priority,
        subscription.join_mode, subscription.join_name, subscription.join_path,
        subscription.status = 'SHADOW' AS is_shadow, subscription.takes_unmatched
    FROM subscriptions_subscription subscription
    JOIN subscriptions_subscriber subscriber ON subscriber.id = subscription.subscriber_id
    WHERE subscription.event_type_id = %s AND subscription.status <> 'INACTIVE'
        AND subscriber.status <> 'INACTIVE' AND subscription.header_filter_string = ANY (%s)
    ORDER BY subscription.subscriber_id, subscription.position, subscription.id
"""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A subscription other than INACTIVE, with the fields for matching."""

    subscription_id: int
    subscriber_id: int
    header_filter_string: str
    filter: str
    filter_identity: str
    match_mode: str
    dedup_mode: str = DedupMode.NONE
    dedup_path: str = ""
    mode: str = Mode.PUSH
    is_by_priority: bool = False
    join_mode: str = JoinMode.NONE
    join_name: str = ""
    join_path: str = ""
    is_shadow: bool = False
    takes_unmatched: bool = False

    @property
    def is_first_only(self) -> bool:
        return self.match_mode == MatchMode.FIRST

    @property
    def is_pull(self) -> bool:
        return self.mode == Mode.PULL

    @property
    def deduplicates(self) -> bool:
        return self.dedup_mode != DedupMode.NONE

    @property
    def joins(self) -> bool:
        return self.join_mode != JoinMode.NONE


def find_candidates(event_type_id: int, *, filter_strings: Iterable[str]) -> list[Candidate]:
    """Return the subscriptions with no header filter string, or with one of these.

    They are not INACTIVE, nor are their subscribers; those of a subscriber are ordered by position.
    """
    with connection.cursor() as cursor:
        # Django's wrapper logs the statement and translates errors; psycopg's cursor makes rows.
        cursor.cursor.row_factory = _candidate_row
        cursor.execute(_CANDIDATES, [event_type_id, ["", *filter_strings]])
        found: list[Candidate] = cursor.fetchall()
    return found


_FIELDS = [field.name for field in fields(Candidate)]


def _candidate_row(cursor: psycopg.Cursor[Any]) -> Callable[[Sequence[Any]], Candidate]:
    """Make candidates of rows whose columns are the fields, in this order.

    psycopg's `class_row` takes 2.4 times as long: it passes each value of each row by name.
    """
    names = [column.name for column in cursor.description or ()]
    if names != _FIELDS:
        raise TypeError(f"the columns {names} are not the fields of a candidate")
    return lambda values: Candidate(*values)
