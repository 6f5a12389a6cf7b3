"""Six days of messages, each with separate partitions, for tests of reads by partition."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from django.db import connection

from delivery.models import MessageRange
from tests.support import factories
from tests.support.partitions import PartitionScan
from tests.unit.delivery.maintenance.ranged import ids_put_back, range_of

DAYS, CHOSEN = 6, 2
ROWS = 1_000
BEGINNING = datetime(2026, 3, 2, 3, tzinfo=UTC)

# A message a minute; every twentieth delivery is REJECTED, with an attempt and an output of its
# own.
_FILL = """
    WITH filled AS (
        INSERT INTO delivery_message (
            id, event_type_id, publisher_id, headers, content_type, body, published_at
        )
        SELECT
            %(first)s + number, %(event_type)s, %(publisher)s, '{"x-a": "needle"}',
            'application/json', '{"a": "needle"}', %(at)s + number * interval '1 minute'
        FROM generate_series(0, %(last)s) AS number
        RETURNING id, published_at
    ), settled AS (
        INSERT INTO delivery_delivery (
            id, message_id, subscription_id, lane_id, status, attempts, skipped, redelivery, reason,
            settled_at, receive_count, started_at, duration_ms, status_code
        )
        SELECT
            filled.id << 20, filled.id, %(subscription)s, %(lane)s, status, 1, false, '', '',
            published_at + interval '1 second', 0,
            CASE WHEN status = 'DELIVERED' THEN published_at END, 5, 200
        FROM filled
        CROSS JOIN LATERAL (
            SELECT CASE WHEN filled.id %% 20 = 1 THEN 'REJECTED' ELSE 'DELIVERED' END AS status
        ) AS chosen
        RETURNING id, status, settled_at
    ), made AS (
        INSERT INTO delivery_scriptoutput (
            delivery_id, script_version, content_type, headers, path
        )
        SELECT id, 1, '', '{}', '' FROM settled WHERE status = 'REJECTED'
    )
    INSERT INTO delivery_loggedattempt (
        delivery_id, number, started_at, duration_ms, outcome, status_code, error, excerpt
    )
    SELECT id, 1, settled_at, 5, 'CLIENT_ERROR', 422, '', '' FROM settled WHERE status = 'REJECTED'
"""
# Only of the new partitions: statistics of others would outlive the test.
_ANALYZE = "ANALYZE " + ", ".join(
    f"delivery_{table}_%(first)s"
    for table in ("message", "settled", "loggedattempt", "scriptoutput")
)


@dataclass(frozen=True, slots=True)
class Days:
    """Six days, each with partitions of its own, of which one is asked for."""

    ranges: list[MessageRange]
    subscriber: str

    @property
    def chosen(self) -> MessageRange:
        return self.ranges[CHOSEN]

    @property
    def rejected_id(self) -> int:
        """A message of the chosen day, whose delivery is REJECTED."""
        return self.chosen.first_id + 41

    def beyond(self, scans: list[PartitionScan], *, slack: int = 0) -> list[PartitionScan]:
        """Return the scans of other days; `slack` days before and after the chosen one count."""
        near = {str(day.first_id) for day in self.ranges[CHOSEN - slack : CHOSEN + slack + 1]}
        return [scan for scan in scans if scan.range not in near]


@contextmanager
def six_days() -> Iterator[Days]:
    """Create six days with ROWS messages each. Use it in a transaction, which undoes it."""
    subscription = factories.subscription()
    given = {
        "last": ROWS - 1,
        "event_type": subscription.event_type_id,
        "publisher": factories.publisher().pk,
        "subscription": subscription.pk,
        "lane": subscription.subscriber.lane.pk,
    }
    made = []
    with ids_put_back():
        for day in range(DAYS):
            with range_of(100_000) as held, connection.cursor() as cursor:
                at = BEGINNING + timedelta(days=day)
                cursor.execute(_FILL, given | {"first": held.first_id + 1, "at": at})
                cursor.execute(_ANALYZE, {"first": held.first_id})
            made.append(held)
        yield Days(made, subscription.subscriber.name)
