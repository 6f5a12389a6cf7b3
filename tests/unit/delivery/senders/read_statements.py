"""Rows of the senders' reading statements."""

from typing import Any

from django.db import connection


def run_parameters(lane_id: int, *, rows: int = 10) -> dict[str, Any]:
    """Return the parameters of `read_runs.sql` for the first run of one lane."""
    return {
        "lane": [lane_id],
        "rows": [rows],
        "fresh_rows": [rows],
        "skipped_rows": [max(rows // 2, 1)],
        "fresh_first": [False],
        "resting": ["{}"],
        "seconds": [None],
        "bytes": [10_000_000],
        "in_memory": ["{}"],
        "is_traced": False,
    }


def independent_parameters(lane_id: int, **fields: Any) -> dict[str, Any]:
    """Return the parameters of the statements of lanes that do not record a run ahead."""
    return {
        "lane": lane_id,
        "rows": 10,
        "most": None,
        "bytes": 1_000_000,
        "in_memory": [],
        "excluded": [],
        "excluded_origins": [],
        "is_traced": False,
    } | fields


def fetch(text: str, parameters: dict[str, Any] | None = None) -> list[dict[str, Any]]:
    with connection.cursor() as cursor:
        cursor.execute(text, parameters)
        columns = [column.name for column in cursor.description or ()]
        return [dict(zip(columns, row, strict=True)) for row in cursor.fetchall()]


def pages(text: str, parameters: dict[str, Any]) -> int:
    """Return how many pages a statement touches."""
    plan: Any = fetch(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {text}", parameters)
    found = plan[0]["QUERY PLAN"][0]["Plan"]
    return int(found["Shared Hit Blocks"]) + int(found["Shared Read Blocks"])
