"""The partitions read by executed statements: from the plan of each, with the actual rows."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from django.db import connection, transaction

_PARTITION = re.compile(r"(delivery_(?:message|settled|loggedattempt|scriptoutput))_(\d+|rest)")
# After comments.
_EXPLAINED = re.compile(r"(\s*--.*\n)*\s*\(?(SELECT|WITH|INSERT|UPDATE|DELETE)\b")
_LEFT_OUT = ("Rows Removed by Filter", "Rows Removed by Index Recheck")


@dataclass(frozen=True, slots=True)
class PartitionScan:
    """An executed scan of a partition: of a table, and of the range with this first id or `rest`.

    `rows` were read, including those left out afterwards by a condition.
    """

    table: str
    range: str
    rows: int


@dataclass(frozen=True, slots=True)
class Plans:
    """The statements on partitions, each with the scans."""

    statements: list[tuple[str, list[PartitionScan]]] = field(default_factory=list)

    def explain(self, text: str, parameters: Any = None) -> None:
        """Execute a statement to explain it, and undo the effect."""
        with transaction.atomic():
            cursor = connection.connection.cursor()
            cursor.execute(f"EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) {text}", parameters)
            ((plans,),) = cursor.fetchall()
            transaction.set_rollback(True)
        if scans := list(_scans(plans[0]["Plan"])):
            self.statements.append((text, scans))

    def scans(self) -> list[PartitionScan]:
        return [scan for _, scans in self.statements for scan in scans]


@contextmanager
def explaining() -> Iterator[Plans]:
    """Explain each statement of Django in the block, before it is executed.

    Use it in a transaction.
    """
    plans = Plans()

    def explain(execute: Any, text: str, parameters: Any, many: bool, context: Any) -> Any:
        if _EXPLAINED.match(text):
            plans.explain(text, parameters)
        return execute(text, parameters, many, context)

    with connection.execute_wrapper(explain):
        yield plans


def _scans(node: Mapping[str, Any]) -> Iterator[PartitionScan]:
    named = _PARTITION.fullmatch(node.get("Relation Name", ""))
    if named and node["Node Type"].endswith("Scan") and node["Actual Loops"]:
        rows = node["Actual Rows"] + sum(node.get(name, 0) for name in _LEFT_OUT)
        yield PartitionScan(named[1], named[2], round(rows * node["Actual Loops"]))
    for below in node.get("Plans", ()):
        yield from _scans(below)
