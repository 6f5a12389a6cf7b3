"""The results of a benchmark: numbers with their limits, and whether a message was lost."""

import json
import math
import os
import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

from django.db import connection

# The units printed without decimal places.
_WHOLE = frozenset({"/s", "µs", "MB"})


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchResult:
    """A value with a limit; `wanted` is the promised ratio of the two.

    A value with `enough` meets the promise with any ratio. Without `wanted` nothing is promised:
    the value explains others.
    """

    name: str
    value: float
    unit: str
    limit: float
    ratio: float
    wanted: float | None
    is_at_most: bool = False
    enough: float | None = None

    @property
    def is_met(self) -> bool | None:
        if self.wanted is None:
            return None
        if self.enough is not None and self.value >= self.enough:
            return True
        return self.ratio <= self.wanted if self.is_at_most else self.ratio >= self.wanted

    def as_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "value": round(self.value, 1),
            "unit": self.unit,
            "limit": round(self.limit, 1),
            "ratio": round(self.ratio, 3),
            "wanted": self.wanted,
            "met": self.is_met,
        }

    def as_text(self) -> str:
        if self.wanted is None:
            return f"{self.name:<52} {self.value:>9,.{self._places}f} {self.unit}"
        verdict = "met" if self.is_met else "NOT MET"
        bound = f"{'at most' if self.is_at_most else 'at least'} {self.wanted:g}"
        if self.enough is not None:
            bound += f", or {self.enough:,.0f} {self.unit}"
        return (
            f"{self.name:<52} {self.value:>9,.{self._places}f} of {self.limit:>9,.{self._places}f} "
            f"{self.unit:<3}  ratio {self.ratio:5.2f}  ({bound}: {verdict})"
        )

    @property
    def _places(self) -> int:
        return 0 if self.unit in _WHOLE else 1


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchReceipt:
    """The receiver's counts of the expected deliveries."""

    expected: int = 0
    got: int = 0
    lost: int = 0
    duplicated: int = 0
    out_of_order: int = 0

    def __add__(self, other: "BenchReceipt") -> "BenchReceipt":
        mine, yours = asdict(self), asdict(other)
        return BenchReceipt(**{name: mine[name] + yours[name] for name in mine})

    @property
    def is_right(self) -> bool:
        return not (self.lost or self.duplicated or self.out_of_order)


def compare(
    name: str,
    product: Sequence[float],
    bare: Sequence[float],
    *,
    wanted: float,
    enough: float | None = None,
) -> BenchResult:
    """Compare rates, in deliveries per second, measured in turns.

    The ratio is the median of the rounds' ratios: other load on the machine varies, and slows both
    rates of a round. Two medians may come from different moments.
    """
    # If nothing arrived in a round of the bare loop, the round shows nothing.
    ratios = [rate / limit if limit else 0.0 for rate, limit in zip(product, bare, strict=True)]
    return BenchResult(
        name=name,
        value=median(product),
        unit="/s",
        limit=median(bare),
        ratio=median(ratios),
        wanted=wanted,
        enough=enough,
    )


def compare_costs(
    name: str, costs: Sequence[float], limits: Sequence[float], *, at_most: float
) -> BenchResult:
    """Compare costs per message in microseconds, measured in turns as well."""
    ratios = [cost / limit for cost, limit in zip(costs, limits, strict=True)]
    return BenchResult(
        name=name,
        value=median(costs),
        unit="µs",
        limit=median(limits),
        ratio=median(ratios),
        wanted=at_most,
        is_at_most=True,
    )


def at_most(name: str, value: float, limit: float | None, *, unit: str) -> BenchResult:
    """Return a value that may not exceed the limit; without a limit the value is only reported."""
    if limit is None:
        return BenchResult(name=name, value=value, unit=unit, limit=value, ratio=1.0, wanted=None)
    return BenchResult(
        name=name,
        value=value,
        unit=unit,
        limit=limit,
        ratio=value / limit,
        wanted=1,
        is_at_most=True,
    )


def percentile(values: Sequence[float], percent: float) -> float:
    """Return the smallest value not exceeded by so many percent of all values."""
    ordered = sorted(values)
    return ordered[max(math.ceil(len(ordered) * percent / 100) - 1, 0)]


def print_report(
    bench: str, results: Sequence[BenchResult], receipt: BenchReceipt, *, as_json: bool
) -> None:
    """Print a JSON object, or the same for people."""
    if as_json:
        report = {
            "bench": bench,
            "machine": machine(),
            "results": [result.as_json() for result in results],
            "receiver": asdict(receipt),
        }
        print(json.dumps(report))
        return
    print(", ".join(f"{name} {value}" for name, value in machine().items()))
    for result in results:
        print(result.as_text())
    print(
        ", ".join(f"{count:,} {name.replace('_', ' ')}" for name, count in asdict(receipt).items())
    )
    if not receipt.is_right:
        print("FAILED: not each delivery came exactly once and in order.")


def machine() -> dict[str, Any]:
    with connection.cursor() as cursor:
        cursor.execute("SHOW server_version")
        row = cursor.fetchone()
    return {
        "processor": _processor(),
        "cores": _cores(),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "postgresql": str(row[0]) if row else "",
    }


def _processor() -> str:
    """Return the processor's name from Linux; on other systems Python's."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next(
        (line.partition(":")[2].strip() for line in lines if line.startswith("model name")),
        platform.machine(),
    )


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
