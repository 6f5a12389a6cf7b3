"""Every statement can find its rows by an index.

The planner scans a whole table only if there is no other way.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import psycopg
import pytest
from django.db import connection, transaction

from delivery.database.statements import numbered
from tests.architecture.test_statements import FILES

# They are completed before they are executed.
TEMPLATES = {"archive_bounds", "copy_replay_items", "effect_of_change", "lock_range", "settle"}
# Small tables, and tables that a rare pass or the pipeline reads whole on purpose.
READS_WHOLE = {
    # Once, when a person gives up an archive that is lost.
    "archive_forget": {"delivery_archivechunk", "delivery_archived"},
    "archive_forget_files": {"delivery_archivefile"},
    "archive_losses": {"delivery_archived"},
    # One row, and the common scripts, of which there are few.
    "changed_subscriptions": {"subscriptions_scriptlibrary"},
    # Once, before the restored database is used.
    "settle_restored": {"delivery_waiting"},
    "endpoints": {"subscriptions_commonscript"},
    "forget_configuration_transactions": {"subscriptions_configurationtransaction"},
    "forget_dedup_keys": {"subscriptions_subscription"},
    "is_range_due": {"delivery_message_id_seq"},
    # People start replays; there are a few.
    "is_replay_due": {"delivery_replay"},
    # One row for each step.
    "is_turn_due": {"delivery_pipelineschedule"},
    "kept_in_range": {
        "delivery_message_id_seq",
        "delivery_resubmission",
        "subscriptions_subscription",
    },
    "lanes_of_url": {"delivery_lane"},
    # Up to the first row.
    "new_since_proof": {"delivery_waiting"},
    "newest_ids": {"delivery_message_id_seq"},
    "newest_of_subscriptions": {"delivery_lane"},
    "open_of_subscription": {"delivery_lane"},
    "remove_messages": {"delivery_callback", "delivery_resubmission"},
    "rollup_forget": {"delivery_historyhour"},
    "unarchived_deliveries": {"delivery_waiting"},
    "unfinished_lanes": {"delivery_lane"},
}

# Remove the statistics of other tests and autovacuum: PostgreSQL plans a table that was once found
# empty as if it always were.
_FORGET_TABLES = """
    SELECT pg_clear_relation_stats(relnamespace::regnamespace::text, relname::text)
    FROM pg_class
    WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') AND reltuples >= 0
"""
_FORGET_COLUMNS = """
    SELECT pg_clear_attribute_stats(schemaname::text, tablename::text, attname::text, inherited)
    FROM pg_stats WHERE schemaname = 'public'
"""


@pytest.fixture(autouse=True)
def _without_statistics(db: None) -> None:
    with connection.cursor() as cursor:
        cursor.execute(_FORGET_TABLES)
        cursor.execute(_FORGET_COLUMNS)


@pytest.mark.parametrize("name", sorted(set(FILES) - TEMPLATES))
def test_a_statement_finds_its_rows_by_indexes(name: str) -> None:
    read_whole = {node["Relation Name"] for node in _nodes(_plan(name)) if _reads_whole(node)}
    assert read_whole == READS_WHOLE.get(name, set())


def _plan(name: str) -> Mapping[str, Any]:
    """Return the generic plan, made with scans of whole tables as the last resort."""
    text, _ = numbered(name)
    with transaction.atomic(), connection.cursor() as cursor:
        for way in ("seqscan", "hashjoin", "mergejoin"):
            cursor.execute(f"SET LOCAL enable_{way} = off")
        raw = psycopg.RawCursor(connection.connection)
        raw.execute(b"EXPLAIN (GENERIC_PLAN, FORMAT JSON) " + text, prepare=False)
        ((plans,),) = raw.fetchall()
        found: Mapping[str, Any] = plans[0]["Plan"]
        return found


def _nodes(plan: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield plan
    for below in plan.get("Plans", ()):
        yield from _nodes(below)


def _reads_whole(node: Mapping[str, Any]) -> bool:
    return bool(node.get("Disabled")) and node["Node Type"] == "Seq Scan"
