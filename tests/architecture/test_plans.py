"""Every statement can find its rows by an index: a scan of a whole table is chosen only where nothing else exists."""

from collections.abc import Iterator, Mapping
from typing import Any

import psycopg
import pytest
from django.db import connection, transaction

from delivery.database.statements import numbered
from tests.architecture.test_statements import FILES

# They are filled in before they are executed.
TEMPLATES = {"archive_bounds", "copy_replay_items", "lock_range", "settle"}
# Small tables, read whole; and what the pipeline or a rare pass reads whole on purpose.
READ_WHOLE = {
    "delivery_callback",
    "delivery_historyhour",
    "delivery_lane",
    "delivery_message_id_seq",
    "delivery_resubmission",
    "subscriptions_configurationtransaction",
    "subscriptions_subscription",
}
READS_WAITING_WHOLE = {"unarchived_deliveries"}


@pytest.mark.django_db
@pytest.mark.parametrize("name", sorted(set(FILES) - TEMPLATES - READS_WAITING_WHOLE))
def test_a_statement_finds_its_rows_by_indexes(name: str) -> None:
    assert {node["Relation Name"] for node in _nodes(_plan(name)) if _reads_whole(node)} <= READ_WHOLE


def _plan(name: str) -> Mapping[str, Any]:
    """Return the plan for any parameters, made while scans of whole tables and joins that need them are the last resort."""
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
