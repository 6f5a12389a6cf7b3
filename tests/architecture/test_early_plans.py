"""A plan that a connection made while tables were empty still finds rows by an index later.

A prepared statement keeps its plan until PostgreSQL analyzes a table again: ten seconds, or twenty
thousand deliveries, later. To join a table that it takes for empty, the planner gladly reads all of
an index instead of looking up one entry, and the table grows. A subquery by LATERAL with a LIMIT,
or an array of ids, leaves it no choice.
"""

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import psycopg
import pytest
from django.db import connection
from django.db.backends.utils import CursorWrapper

from delivery.database.statements import numbered
from delivery.outcome import Outcome
from delivery.senders.commits.commit_statements import commit_statements
from delivery.senders.entries import Settlement
from delivery.states import OutcomeClass, Status
from delivery.verdict import NextStep, Verdict
from tests.architecture.test_plans import TEMPLATES
from tests.architecture.test_statements import FILES

# Their statements are executed for each message, delivery or group of them.
PACKAGES = {
    *("calls", "incidents", "lifecycle", "mailbox", "maintenance", "publishing", "replays"),
    *("senders", "standing", "support"),
}
# Tables that grow with the messages; the last part of a partition's name is left out.
GROWING = {
    "delivery_callback",
    "delivery_dedupkey",
    "delivery_earliersettlement",
    "delivery_failurenotice",
    "delivery_idempotencykey",
    "delivery_joinkey",
    "delivery_journalentry",
    "delivery_loggedattempt",
    "delivery_message",
    "delivery_reply",
    "delivery_scriptoutput",
    "delivery_settled",
    "delivery_waiting",
}
# None of them is prepared: each execution is planned for the tables as they are then.
READS_WHOLE = {
    "settle_restored": {"delivery_waiting"},
    "ended_failures": {"delivery_settled"},
    "find_causes": {"delivery_waiting"},
    "make_parts_wait": {"delivery_joinkey", "delivery_waiting"},
    "incident_facts": {"delivery_settled", "delivery_waiting"},
    "incident_outcomes": {"delivery_settled", "delivery_waiting"},
    "lock_groups": {"delivery_settled", "delivery_waiting"},
    "make_replayed": {"delivery_message", "delivery_settled", "delivery_waiting"},
    "overview_backlog": {"delivery_message"},
    "remove_messages": {
        "delivery_callback",
        "delivery_failurenotice",
        "delivery_idempotencykey",
        "delivery_message",
    },
    "reopen": {"delivery_settled"},
    "settle_duplicates": {"delivery_dedupkey", "delivery_waiting"},
    "settle_not_first": {"delivery_joinkey", "delivery_waiting"},
    "settle_overdue": {"delivery_waiting"},
}

# Without them, plans depend on what other tests left: pages of deleted rows, and statistics.
_EMPTY = """
    DO $$
    BEGIN
        EXECUTE 'TRUNCATE ' || (
            SELECT string_agg(relname, ', ')
            FROM pg_class
            WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p')
                AND relname ~ '{tables}'
        ) || ' CASCADE';
        PERFORM pg_restore_relation_stats(
            'schemaname', 'public', 'relname', relname::text,
            'relpages', 0, 'reltuples', {rows}::real
        )
        FROM pg_class
        WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'i');
        PERFORM pg_clear_attribute_stats('public', tablename::text, attname::text, inherited)
        FROM pg_stats
        WHERE schemaname = 'public';
    END $$
"""
# Nodes of a plan that pass each row on as it comes.
_PASSING = {"Append", "Limit", "LockRows", "Merge Append", "Nested Loop", "Result", "Subquery Scan"}


@pytest.mark.django_db
def test_a_plan_made_while_tables_were_empty_finds_rows_by_indexes() -> None:
    names = sorted(name for name in set(FILES) - TEMPLATES if package_of(name) in PACKAGES)
    with connection.cursor() as cursor:
        empty(cursor, tables="", rows=0)
        for way in ("seqscan", "hashjoin", "mergejoin"):
            cursor.execute(f"SET LOCAL enable_{way} = off")
    texts = {name: numbered(name)[0] for name in names} | {"settle": _settle_many()}
    found = {name: _growing_read_whole(text) for name, text in texts.items()}
    assert {name: tables for name, tables in found.items() if tables} == READS_WHOLE


def empty(cursor: CursorWrapper, *, tables: str, rows: int) -> None:
    """Empty the tables whose names match the pattern, and forget the statistics of all.

    The planner takes each table for one of so many rows, and looks at its size with -1.
    """
    cursor.execute(_EMPTY.format(tables=tables, rows=rows))


def package_of(name: str) -> str:
    return FILES[name].parent.parent.name


def _settle_many() -> bytes:
    """Return the one template among these statements as the senders complete it for many rows."""
    now = datetime.now(UTC)
    verdict = Verdict(status=Status.DELIVERED, step=NextStep.NEXT)
    outcome = Outcome(
        outcome=OutcomeClass.SUCCESS, started_at=now, duration_ms=3, status_code=200, error="a note"
    )
    settlements = [
        Settlement(lane_id=1, delivery_id=number, number=1, verdict=verdict, outcome=outcome)
        for number in (1, 2)
    ]
    ((text, _),) = commit_statements(settlements)
    return text.replace("%(rows)s", "$1").encode()


def _growing_read_whole(text: bytes) -> set[str]:
    return set(_read_whole(generic_plan(text), is_stopped=False)) & GROWING


def generic_plan(text: bytes) -> Mapping[str, Any]:
    raw = psycopg.RawCursor(connection.connection)
    raw.execute(b"EXPLAIN (GENERIC_PLAN, VERBOSE, FORMAT JSON) " + text, prepare=False)
    ((plans,),) = raw.fetchall()
    found: Mapping[str, Any] = plans[0]["Plan"]
    return found


def table_of(scan: Mapping[str, Any]) -> str:
    """Return the table that a node of a plan scans, without the last part of a partition's name."""
    return re.sub(r"_(\d+|rest)$", "", scan["Relation Name"])


def _read_whole(node: Mapping[str, Any], *, is_stopped: bool) -> Iterator[str]:
    """Yield the tables of scans that have no condition for an index and no limit that ends them."""
    kind = node["Node Type"]
    if kind.endswith("Scan") and "Relation Name" in node:
        by_bitmap = kind == "Bitmap Heap Scan"
        scan = node["Plans"][0] if by_bitmap else node
        if not is_stopped and "Index Cond" not in scan and kind != "Tid Scan":
            yield table_of(node)
    below = kind == "Limit" or (is_stopped and kind in _PASSING)
    for place, part in enumerate(node.get("Plans", ())):
        is_source = part["Parent Relationship"] in ("Outer", "Member", "Subquery") and place == 0
        is_source |= part["Parent Relationship"] == "Member"
        yield from _read_whole(part, is_stopped=below and is_source)
