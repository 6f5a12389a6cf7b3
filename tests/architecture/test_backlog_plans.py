"""No read of a subscription's deliveries filters the backlog of another one row by row.

When all waiting deliveries are of one subscription, each condition seems true of every row. Then
the planner takes the primary key for `ORDER BY id LIMIT`, and reads of another subscription, whose
rows come after the backlog, filter the backlog out row by row. It cannot take the primary key for
an order that only the right index has, such as `skipped, id`.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from django.db import connection

from delivery.database.statements import numbered
from tests.architecture.test_early_plans import (
    GROWING,
    PACKAGES,
    empty,
    generic_plan,
    package_of,
    table_of,
)
from tests.architecture.test_plans import TEMPLATES
from tests.architecture.test_statements import FILES
from tests.support import factories
from tests.support.sequences import kept_sequences  # noqa: F401 - a fixture

_BACKLOG = """
    WITH made AS (
        INSERT INTO delivery_message (event_type_id, headers, content_type, body)
        SELECT %s, '{}', 'application/json', '{}' FROM generate_series(1, 20000)
        RETURNING id
    )
    INSERT INTO delivery_waiting (
        id, message_id, subscription_id, lane_id, status, attempts, skipped, redelivery, reason,
        receive_count
    )
    SELECT id << 20, id, %s, %s, 'PENDING', 0, false, '', '', 0 FROM made
"""
# By design: these filter an index with few rows, or are planned for the tables as they are then.
FILTERING = {
    "is_notice_due": {"delivery_failurenotice_pkey"},
    "take_failures": {"delivery_failurenotice_pkey"},
    "lock_overdue": {"delivery_volatile"},
    "lock_overdue_groups": {"delivery_volatile"},
    "make_replayed": {"delivery_message_pkey"},
    "overview_backlog": {"delivery_message_pkey"},
    "remove_messages": {"delivery_callback", "delivery_message_edited_from_id_idx"},
    "settle_restored": {"delivery_waiting"},
}


@pytest.mark.django_db
@pytest.mark.usefixtures("kept_sequences")
def test_no_statement_filters_a_backlog_row_by_row() -> None:
    with connection.cursor() as cursor:
        empty(cursor, tables=f"^({'|'.join(GROWING)})(_|$)", rows=-1)
    subscription = factories.subscription()
    with connection.cursor() as cursor:
        lane = subscription.subscriber.lane.pk
        cursor.execute(_BACKLOG, [subscription.event_type_id, subscription.pk, lane])
        cursor.execute("ANALYZE delivery_message, delivery_waiting")
    names = sorted(name for name in set(FILES) - TEMPLATES if package_of(name) in PACKAGES)
    found = {name: set(_filtering(generic_plan(numbered(name)[0]))) for name in names}
    assert {name: scans for name, scans in found.items() if scans} == FILTERING


def _filtering(node: Mapping[str, Any]) -> Iterator[str]:
    """Yield the scans of deliveries that have a filter, and no condition for an index."""
    is_scan = "Relation Name" in node and node["Node Type"] != "Bitmap Heap Scan"
    if is_scan and table_of(node) in GROWING and "Filter" in node and "Index Cond" not in node:
        yield re.sub(r"_(\d+|rest)(?=_)", "", node.get("Index Name", table_of(node)))
    for part in node.get("Plans", ()):
        yield from _filtering(part)
