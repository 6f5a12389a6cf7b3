"""`bench history`: the pipeline's time for a million attempts, compared with a plain COPY.

It also measures the pipeline's cost for the senders. It runs the users' commands, each in a process
with another JVM; the first run writes the cache for the others, and does not count.
"""

import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from statistics import median

from delivery.models import Delivery, Status
from delivery.pipeline import settings
from tests.bench import children, history_stage, stage
from tests.bench.history_steps import BenchStep, begun
from tests.bench.measuring import (
    COMMIT_SECONDS,
    STALL_SECONDS,
    START_SECONDS,
    Measuring,
    wait_until,
)
from tests.bench.results import BenchReceipt, BenchResult, print_report
from tests.bench.sizes import BenchSizes

OF_BARE, BESIDE = 1.8, 0.6
# Of a JVM, and of the JVM which records classes for the cache.
MEGABYTES, RECORDING_MEGABYTES = 1_536, 2_048
# Rollup and verify of everything: at most so long, and so much more for each million attempts. And
# a verify with nothing new since the last proof.
SECONDS, SECONDS_A_MILLION, NOTHING_NEW_SECONDS = 20.0, 12.0, 3.0


class Bench:
    """The common state of scenarios: the measured history, and the memory of the JVMs."""

    def __init__(self, measuring: Measuring) -> None:
        self.measuring = measuring
        self.megabytes = 0.0
        self.attempts = history_stage.count_attempts()

    def run(self, name: str) -> float:
        """Run a step, and return the duration in seconds."""
        began = time.monotonic()
        with begun(name) as step:
            while step.is_under_way():
                pass
            self.note(step)
        return time.monotonic() - began

    def note(self, step: BenchStep) -> None:
        self.megabytes = max(self.megabytes, step.megabytes)

    def memory(self, name: str, *, limit: float) -> BenchResult:
        return _at_most(f"most memory of {name}", self.megabytes, "MB", limit=limit)


def exported(bench: Bench) -> list[BenchResult]:
    """Export the whole history, and copy the same tables by COPY, in turns."""
    product, bare = [], []
    for _ in bench.measuring.rounds("export", bench.measuring.sizes.history_rounds):
        bare.append(_copied())
        history_stage.forget_archive()
        product.append(bench.run("export"))
    ratios = [seconds / limit for seconds, limit in zip(product, bare, strict=True)]
    return [
        BenchResult(
            name=f"export of {bench.attempts:,} attempts, of COPY into Parquet",
            value=median(product),
            unit="s",
            limit=median(bare),
            ratio=median(ratios),
            wanted=OF_BARE,
            is_at_most=True,
        )
    ]


def measured_and_verified(bench: Bench) -> list[BenchResult]:
    """Roll up all hours and verify the whole archive."""
    if not history_stage.is_archived():
        bench.run("export")
    took, again = [], []
    for _ in bench.measuring.rounds("verify", bench.measuring.sizes.history_rounds):
        history_stage.forget_results()
        # Archived rows are not exported again: the export then starts no Spark.
        took.append(bench.run("all"))
        again.append(bench.run("verify"))
    limit = SECONDS + SECONDS_A_MILLION * bench.attempts / 1_000_000
    return [
        _at_most("rollup and verify of it", median(took), "s", limit=limit),
        _at_most("verify of nothing new", median(again), "s", limit=NOTHING_NEW_SECONDS),
    ]


def beside_senders(bench: Bench) -> list[BenchResult]:
    """Measure the senders on a backlog: first alone, then during an export."""
    measuring, sizes = bench.measuring, bench.measuring.sizes
    ratios, alone, beside = [], [], []
    for number in measuring.rounds("beside", sizes.beside_rounds):
        history_stage.forget_archive()
        cast = stage.make_cast(f"beside-{number}", url=measuring.receiver.url, lanes=sizes.lanes)
        measuring.receiver.reset()
        cast.let_in(hanging=False)
        cast.publish(sizes.beside_messages)
        cast.hold()
        with children.senders(sizes.senders):
            wait_until(sizes.senders, stage.senders, seconds=START_SECONDS)
            cast.let_in(hanging=False)
            expected = sizes.beside_messages * cast.lanes
            wait_until(min(cast.lanes, expected), measuring.receiver.count, seconds=START_SECONDS)
            alone.append(_rate_alone(measuring, expected))
            beside.append(_rate_beside(bench, expected))
            _receive(measuring, cast, expected)
        ratios.append(beside[-1] / alone[-1])
    return [
        BenchResult(
            name=f"{sizes.lanes} lanes beside an export, of without it",
            value=median(beside),
            unit="/s",
            limit=median(alone),
            ratio=median(ratios),
            wanted=BESIDE,
        )
    ]


SCENARIOS = {"export": exported, "verify": measured_and_verified, "beside": beside_senders}


def run(sizes: BenchSizes, *, scenarios: Sequence[str], as_json: bool) -> int:
    """Measure, print, and return the exit code.

    It is 1 if a delivery was lost, duplicated or out of order.
    """
    history_stage.make_whole()
    with children.receiver() as receiver:
        measuring = Measuring(sizes, receiver)
        first, bench = Bench(measuring), Bench(measuring)
        first.run("all")
        results = [result for name in scenarios for result in SCENARIOS[name](bench)]
        results += [
            bench.memory("a JVM", limit=MEGABYTES),
            first.memory("the first run's JVM", limit=RECORDING_MEGABYTES),
        ]
    print_report("history", results, measuring.receipt, as_json=as_json)
    return 0 if measuring.receipt.is_right else 1


def _copied() -> float:
    """Copy the tables into Parquet in a separate process; return the duration in seconds."""
    with tempfile.TemporaryDirectory(prefix="inturn-bench-") as folder:
        began = time.monotonic()
        command = [sys.executable, "-m", "tests.bench.bare_archive", folder]
        subprocess.run(command, input=settings.conninfo("inturn bench"), text=True, check=True)
        return time.monotonic() - began


def _rate_alone(measuring: Measuring, expected: int) -> float:
    began, first = time.monotonic(), measuring.receiver.count()
    until = began + measuring.sizes.beside_seconds
    while (count := measuring.receiver.count()) < expected and time.monotonic() < until:
        time.sleep(0.05)
    return (count - first) / (time.monotonic() - began)


def _rate_beside(bench: Bench, expected: int) -> float:
    """Return the rate from the start of the export until it ends, or until the backlog is empty."""
    receiver = bench.measuring.receiver
    began, first = time.monotonic(), receiver.count()
    count, took = first, 0.0
    with begun("export") as step:
        while step.is_under_way():
            if count < expected:
                count, took = receiver.count(), time.monotonic() - began
        bench.note(step)
    return (count - first) / took


def _receive(measuring: Measuring, cast: stage.BenchSetup, expected: int) -> None:
    """Wait for the remaining requests, and add the recorded ones to the receipt."""

    def delivered() -> int:
        rows = Delivery.objects.filter(subscription__in=cast.event_type.subscriptions.all())
        return rows.filter(status=Status.DELIVERED).count()

    wait_until(expected, measuring.receiver.count, seconds=STALL_SECONDS)
    wait_until(expected, delivered, seconds=COMMIT_SECONDS)
    tally = measuring.receiver.tally()
    measuring.receipt += BenchReceipt(
        expected=expected,
        got=tally["got"],
        lost=expected - min(tally["got"], delivered()),
        duplicated=tally["duplicated"],
        out_of_order=tally["out_of_order"],
    )


def _at_most(name: str, value: float, unit: str, *, limit: float) -> BenchResult:
    return BenchResult(
        name=name,
        value=value,
        unit=unit,
        limit=limit,
        ratio=value / limit,
        wanted=1,
        is_at_most=True,
    )
