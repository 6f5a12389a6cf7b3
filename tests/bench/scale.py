"""`bench scale`: rate and latency by the number of subscribers, and by the number of stored
deliveries.

The rate is that of a backlog which the senders of a started product drain; the latency, from the
publisher to the receiver, is measured at two messages per second, each to all subscribers.
"""

import subprocess
import sys
from pathlib import Path

from tests.bench import latency, stage
from tests.bench.latency import LatencyLoad
from tests.bench.measuring import STALL_SECONDS, Measuring, rate_of, wait_until
from tests.bench.plots import Panel, write
from tests.bench.results import BenchResult, at_most, percentile
from tests.bench.started import started_beside

SUBSCRIBERS = (1, 3, 10, 30, 100)
SUBSCRIBERS_BESIDE_STORED = 10
RATE = 2.0


def by_subscribers(measuring: Measuring) -> list[BenchResult]:
    found = {str(count): _measured(measuring, count, name=f"subscribers{count}") for count in SUBSCRIBERS}
    return _told(measuring, found, "subscribers")


def by_stored(measuring: Measuring) -> list[BenchResult]:
    found = {}
    for stored in measuring.sizes.stored:
        # The tests' generator adds the missing deliveries.
        command = [sys.executable, "-m", "tests.support.many", "--more", "--deliveries", str(stored)]
        subprocess.run(command, check=True, stdout=sys.stderr)
        found[f"{stored:,}"] = _measured(measuring, SUBSCRIBERS_BESIDE_STORED, name=f"stored{stored}")
    return _told(measuring, found, "stored deliveries")


def _measured(measuring: Measuring, count: int, *, name: str) -> tuple[float, float, float]:
    """Return the rate, and the p50 and p99 of the latency."""
    cast = stage.make_cast(name, url=measuring.receiver.url, lanes=count)
    cast.let_in(hanging=False)
    messages = max(measuring.sizes.scale_backlog // count, 1)
    cast.publish(messages)
    cast.hold()
    already = stage.delivered()
    with started_beside() as product:
        measuring.receiver.reset()
        cast.let_in(hanging=False)
        expected = messages * count
        wait_until(expected, measuring.receiver.count, seconds=STALL_SECONDS)
        wait_until(already + expected, stage.delivered, seconds=STALL_SECONDS)
        tally = measuring.receiver.tally()
        measuring.receive(tally, expected=expected, already=already)
        taken = latency.milliseconds(measuring, product, LatencyLoad(subscribers=count, rate=RATE, name=name))
    return rate_of(tally), percentile(taken, 50), percentile(taken, 99)


def _told(
    measuring: Measuring, found: dict[str, tuple[float, float, float]], steps_are: str
) -> list[BenchResult]:
    rates, p50s, p99s = zip(*found.values(), strict=True)
    if measuring.sizes.plot:
        write(
            Path(measuring.sizes.plot) / f"by-{steps_are.replace(' ', '-')}.svg",
            (
                Panel(title="Delivered, of a backlog, /s", lines={"": rates}),
                Panel(title="Publish to received, ms", lines={"p50": p50s, "p99": p99s}),
            ),
            steps=list(found),
            steps_are=steps_are,
        )
    return [
        result
        for step, (rate, p50, p99) in found.items()
        for result in (
            at_most(f"{step} {steps_are}: delivered", rate, None, unit="/s"),
            at_most("  publish to received, p50", p50, None, unit="ms"),
            at_most("  publish to received, p99", p99, None, unit="ms"),
        )
    ]


SCENARIOS = {"subscribers": by_subscribers, "stored": by_stored}
