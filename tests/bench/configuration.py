"""`bench scale`, scenario `configuration`: the costs of many subscribers and subscriptions.

Each step measures a started product: the start, the work while nothing is published, messages
matched by many filters, a message to every subscriber, and the configuration as a document.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from statistics import median
from typing import TypeVar

from delivery.configuration.applying import apply_document, checked_document, plan_document
from delivery.configuration.document.export import export_configuration
from delivery.configuration.document.secrets import lookup_of_mapping
from delivery.lifecycle import notifier
from subscriptions.models import Subscription
from tests.bench import latency, stage, usage
from tests.bench.latency import LatencyLoad
from tests.bench.many_subscriptions import ConfigurationSize, make_many
from tests.bench.matching import matching, read_index
from tests.bench.measuring import STALL_SECONDS, Measuring, wait_until
from tests.bench.paced import PacedPublisher, PublishingPace
from tests.bench.results import BenchResult, at_most, percentile
from tests.bench.stage import BenchSetup
from tests.bench.started import Started, started_beside

# The subscribers of the messages whose latency is measured.
SUBSCRIBERS = 10
RATE = 2.0
EVALUATIONS = 20

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Cost:
    value: float
    unit: str


class ConfiguredProduct:
    """A started product with so many subscriptions."""

    def __init__(self, measuring: Measuring, product: Started) -> None:
        self._measuring = measuring
        self._product = product

    def idle(self) -> Iterator[tuple[str, Cost]]:
        seconds = self._measuring.sizes.idle_seconds
        time.sleep(seconds)
        processes = usage.tree(self._product.pid)
        before = usage.computed(processes)
        time.sleep(seconds)
        taken = usage.computed(usage.tree(self._product.pid)) - before
        yield "idle, of one core", Cost(taken.total() / seconds / 10, "%")
        yield from self.memory("idle")

    def memory(self, when: str) -> Iterator[tuple[str, Cost]]:
        processes = usage.tree(self._product.pid)
        for part in ("qcluster", "granian"):
            of_part = [process for process in processes if process.part == part]
            yield f"{when}, {part}: memory", Cost(usage.megabytes(of_part), "MB")

    def filtered(self, cast: BenchSetup) -> Iterator[tuple[str, Cost]]:
        """Publish to many filters: the first message, further ones, and the first after a change.

        A change makes web servers read the subscriptions again, and senders look for theirs.
        """
        yield "filtered: first message", Cost(max(self._published(cast, seconds=0)), "ms")
        times = self._published(cast, seconds=self._measuring.sizes.latency_seconds)
        yield "filtered: a message, p50", Cost(percentile(times, 50), "ms")
        yield "filtered: a message, p99", Cost(percentile(times, 99), "ms")
        row = Subscription.objects.filter(event_type=cast.event_type).order_by("-id")[0]
        Subscription.objects.filter(pk=row.pk).update(timeout_seconds=29)
        notifier.notify_of_change()
        yield "filtered: first after a change", Cost(max(self._published(cast, seconds=0)), "ms")

    def everybody(self, cast: BenchSetup) -> Iterator[tuple[str, Cost]]:
        """Publish to every subscriber: the first message, and one when all lanes are known."""
        for when in ("first", "next"):
            times = self._published(cast, seconds=0)
            yield f"to everybody: {when}, received by half", Cost(percentile(times, 50), "ms")
            yield f"to everybody: {when}, received by all", Cost(max(times), "ms")

    def _published(self, cast: BenchSetup, *, seconds: float) -> list[float]:
        """Publish at RATE, or a single message; return the milliseconds until each was received."""
        measuring = self._measuring
        measuring.receiver.reset()
        already = stage.delivered()
        pace = PublishingPace(
            port=self._product.port,
            event_type=cast.event_type.name,
            key=cast.make_key(),
            rate=RATE,
            seconds=seconds,
        )
        publisher = PacedPublisher(pace)
        publisher.publish()
        expected = len(publisher.posted) * cast.lanes
        wait_until(expected, measuring.receiver.count, seconds=STALL_SECONDS)
        wait_until(already + expected, stage.delivered, seconds=STALL_SECONDS)
        measuring.receive(measuring.receiver.tally(), expected=expected, already=already)
        arrivals = measuring.receiver.arrivals()
        return [1000 * (at - publisher.posted[id]) for id, at in arrivals]


def by_configuration(measuring: Measuring) -> list[BenchResult]:
    steps = {
        f"{size.subscriptions:,} subscriptions": dict(_measured(measuring, size))
        for size in (ConfigurationSize(*numbers) for numbers in measuring.sizes.configured)
    }
    return [result for name, costs in steps.items() for result in _results(name, costs)]


def _results(name: str, costs: Mapping[str, Cost]) -> Iterator[BenchResult]:
    for what, cost in costs.items():
        yield at_most(f"{name}: {what}", cost.value, None, unit=cost.unit)


def _measured(measuring: Measuring, size: ConfigurationSize) -> Iterator[tuple[str, Cost]]:
    name = f"configured{size.subscriptions}"
    many = make_many(name, url=measuring.receiver.url, size=size)
    with started_beside() as product:
        yield "ready after", Cost(product.ready_seconds, "s")
        configured = ConfiguredProduct(measuring, product)
        yield from configured.idle()
        load = LatencyLoad(subscribers=SUBSCRIBERS, rate=RATE, name=name)
        times = latency.milliseconds(measuring, product, load)
        for percent in (50, 99):
            yield (
                f"to {SUBSCRIBERS} subscribers, p{percent}",
                Cost(percentile(times, percent), "ms"),
            )
        yield from configured.filtered(many.filtered)
        yield from configured.everybody(many.everybody)
        yield from configured.memory("afterwards")
    yield from _matching(many.filtered)
    yield from _as_document()


def _matching(cast: BenchSetup) -> Iterator[tuple[str, Cost]]:
    """Match in this process, as a web server does."""
    index, seconds = _timed(lambda: read_index(cast.event_type))
    yield "reading the filters first", Cost(1000 * seconds, "ms")
    yield "matching the first message", Cost(1000 * _timed(lambda: matching(index))[1], "ms")
    times = [_timed(lambda: matching(index))[1] for _ in range(EVALUATIONS)]
    yield "matching a message", Cost(1000 * median(times), "ms")
    _, seconds = _timed(lambda: read_index(cast.event_type))
    yield "reading the filters after a change", Cost(1000 * seconds, "ms")


def _as_document() -> Iterator[tuple[str, Cost]]:
    """Export the configuration, plan it unchanged, and apply a change."""
    content, seconds = _timed(export_configuration)
    yield "export", Cost(seconds, "s")
    wanted, checked = _timed(lambda: checked_document(content, lookup=lookup_of_mapping({})))
    _, seconds = _timed(lambda: plan_document(wanted))
    yield "plan without changes", Cost(checked + seconds, "s")
    content["subscriptions"][-1]["timeout_seconds"] = 28
    wanted = checked_document(content, lookup=lookup_of_mapping({}))
    plan, seconds = _timed(lambda: plan_document(wanted))
    yield "plan of one change", Cost(seconds, "s")
    _, seconds = _timed(lambda: apply_document(wanted, digest=plan.digest, actor="bench"))
    yield "applying it", Cost(seconds, "s")


def _timed(act: Callable[[], T]) -> tuple[T, float]:
    began = time.perf_counter()
    return act(), time.perf_counter() - began
