"""`bench idle`: the resources and the start-up time of a product without publications.

It has a separate home and database. It is started twice: first in an empty home, where it creates
the database, and then as after every restart; the promise is about the second start.
"""

import time
from pathlib import Path

from tests.bench import usage
from tests.bench.measuring import Measuring
from tests.bench.results import BenchResult, at_most
from tests.bench.started import Started, home, started

MOST_MEGABYTES, MOST_PERCENT, MOST_SECONDS = 300, 2, 4
# The time for start-up work after the product is ready.
SETTLE_SECONDS = 10.0


def nothing_published(measuring: Measuring) -> list[BenchResult]:
    with home() as folder:
        with started(folder) as product:
            first_seconds = product.ready_seconds
        return _restarted(measuring, folder, first_seconds=first_seconds)


def _restarted(measuring: Measuring, folder: Path, *, first_seconds: float) -> list[BenchResult]:
    with started(folder) as product:
        time.sleep(min(SETTLE_SECONDS, measuring.sizes.idle_seconds))
        results = _taken(product, seconds=measuring.sizes.idle_seconds)
        return [
            *results,
            at_most("ready after", product.ready_seconds, MOST_SECONDS, unit="s"),
            at_most("ready after the first start", first_seconds, None, unit="s"),
        ]


def _taken(product: Started, *, seconds: float) -> list[BenchResult]:
    processes = usage.tree(product.pid)
    before = usage.computed(processes)
    time.sleep(seconds)
    # Processes started meanwhile have used resources, too.
    processes = usage.tree(product.pid)
    taken = usage.computed(processes) - before
    percents = {part: taken[part] / seconds / 10 for part in ("up", *usage.PARTS)}
    found = [
        at_most("memory (PSS)", usage.megabytes(processes), MOST_MEGABYTES, unit="MB"),
        at_most("of one core", sum(percents.values()), MOST_PERCENT, unit="%"),
        at_most("processes", len(processes), None, unit=""),
    ]
    for part, percent in percents.items():
        of_part = [process for process in processes if process.part == part]
        found.append(at_most(f"  {part}: memory", usage.megabytes(of_part), None, unit="MB"))
        found.append(at_most(f"  {part}: of one core", percent, None, unit="%"))
        found.append(at_most(f"  {part}: processes", len(of_part), None, unit=""))
    return found


SCENARIOS = {"nothing": nothing_published}
