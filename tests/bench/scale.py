"""`bench scale`: rate and latency by the number of subscribers and of stored deliveries.

The rate is of a backlog drained by the senders of a started product; the latency, from the
publisher to the receiver, is measured at two messages per second, each to all subscribers.
"""

from pathlib import Path

from tests.bench import stage
from tests.bench.configuration import by_configuration
from tests.bench.growth import beside_stored, drain, two_a_second
from tests.bench.measuring import Measuring
from tests.bench.plots import Panel, write
from tests.bench.results import BenchResult, at_most
from tests.bench.started import started_beside

SUBSCRIBERS = (1, 3, 10, 30, 100)


def by_subscribers(measuring: Measuring) -> list[BenchResult]:
    found = {str(count): _measured(measuring, count) for count in SUBSCRIBERS}
    return _report(measuring, found, "subscribers")


def by_stored(measuring: Measuring) -> list[BenchResult]:
    steps = {f"{stored:,}": beside_stored(measuring, stored) for stored in measuring.sizes.stored}
    results = _report(
        measuring, {name: step.speed for name, step in steps.items()}, "stored deliveries"
    )
    return [*results, *(result for name, step in steps.items() for result in step.others(name))]


def _measured(measuring: Measuring, count: int) -> tuple[float, float, float]:
    """Return the rate, and the p50 and p99 of the latency."""
    cast = stage.make_cast(f"subscribers{count}", url=measuring.receiver.url, lanes=count)
    cast.let_in(hanging=False)
    messages = max(measuring.sizes.scale_backlog // count, 1)
    cast.publish(messages)
    cast.hold()
    with started_beside() as product:
        rate = drain(measuring, cast, messages=messages)
        return rate, *two_a_second(measuring, cast, product)


def _report(
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


SCENARIOS = {
    "subscribers": by_subscribers,
    "stored": by_stored,
    "configuration": by_configuration,
}
