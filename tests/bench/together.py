"""`bench together`: publishing and delivering at once, compared with the senders alone.

First the senders of a started product drain a backlog alone. Then messages are published at a
steady pace, slightly above the promised number of deliveries: if the senders cannot keep up, the
backlog grows. Finally publishers post without a pause, long enough to show how accepting and
delivering share the machine.
"""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from django.db import connection

from tests.bench import stage, usage
from tests.bench.children import run_publishers
from tests.bench.measuring import STALL_SECONDS, Measuring, rate_of, wait_until
from tests.bench.paced import PacedPublisher, PublishingPace
from tests.bench.publishers import PublishLoad
from tests.bench.results import BenchResult, at_most
from tests.bench.started import Started, started_beside

WANTED = 0.6
# The publishing rate as a fraction of the senders' rate alone.
PUBLISHED = 0.63
SAMPLE_SECONDS = 0.5
# The backlog has grown if at the end it exceeds the deliveries of so many seconds.
MOST_BACKLOG_SECONDS = 1.0
FLOOD_CONNECTIONS, MOST_FLOOD_SECONDS = 16, 5.0
# More than are accepted in the time.
MOST_FLOODED = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedStage:
    """A started product, the subscribers and a publisher's key."""

    product: Started
    cast: stage.BenchSetup
    key: str


def ten_subscribers(measuring: Measuring) -> list[BenchResult]:
    return _at_once(measuring, subscribers=10)


def hundred_subscribers(measuring: Measuring) -> list[BenchResult]:
    return _at_once(measuring, subscribers=100)


def _at_once(measuring: Measuring, *, subscribers: int) -> list[BenchResult]:
    stage.clear()
    cast = stage.make_cast(f"together{subscribers}", url=measuring.receiver.url, lanes=subscribers)
    cast.let_in(hanging=False)
    messages = max(measuring.sizes.together_backlog // subscribers, 1)
    cast.publish(messages)
    cast.hold()
    with started_beside() as product:
        ours = SharedStage(product=product, cast=cast, key=cast.make_key())
        alone = _drained(measuring, cast, messages)
        return [*_paced(measuring, ours, alone=alone), *_flooded(measuring, ours)]


def _drained(measuring: Measuring, cast: stage.BenchSetup, messages: int) -> float:
    """Drain the backlog with the senders alone, and return their rate."""
    measuring.receiver.reset()
    cast.let_in(hanging=False)
    return _received(measuring, messages * cast.lanes, already=0, is_ordered=True)


def _paced(measuring: Measuring, ours: SharedStage, *, alone: float) -> list[BenchResult]:
    seconds = measuring.sizes.together_seconds
    lanes = ours.cast.lanes
    measuring.receiver.reset()
    already = stage.delivered()
    publisher = PacedPublisher(
        PublishingPace(
            port=ours.product.port,
            event_type=ours.cast.event_type.name,
            key=ours.key,
            rate=PUBLISHED * alone / lanes,
            seconds=seconds,
        )
    )

    def backlog() -> int:
        return max(len(publisher.posted) * lanes - measuring.receiver.count(), 0)

    processes = _processes(ours.product)
    before = usage.computed(processes)
    began = time.monotonic()
    with sampled(backlog) as backlogs:
        publisher.publish()
    rate = measuring.receiver.count() / (time.monotonic() - began)
    left = backlog()
    taken = usage.computed(processes) - before
    delivered = max(measuring.receiver.count(), 1)
    _received(measuring, len(publisher.posted) * lanes, already=already)
    name = f"{lanes} subscribers"
    return [
        BenchResult(
            name=f"{name}, beside publishing, of the senders alone",
            value=rate,
            unit="/s",
            limit=alone,
            ratio=rate / alone,
            wanted=WANTED,
        ),
        at_most(f"{name}, backlog at the end", left, MOST_BACKLOG_SECONDS * rate, unit=""),
        *[
            at_most(
                f"  backlog after {percent} % of the time", _at(backlogs, percent), None, unit=""
            )
            for percent in (25, 50, 75)
        ],
        *[
            at_most(f"  a delivery, {part}", 1000 * taken[part] / delivered, None, unit="µs")
            for part in usage.PARTS
        ],
    ]


def _flooded(measuring: Measuring, ours: SharedStage) -> list[BenchResult]:
    """Publish without a pause for a moment, and wait until all deliveries are delivered."""
    measuring.receiver.reset()
    already = stage.delivered()
    load = PublishLoad(
        port=ours.product.port,
        event_type=ours.cast.event_type.name,
        key=ours.key,
        connections=FLOOD_CONNECTIONS,
        messages=MOST_FLOODED,
        batch=1,
        seconds=min(measuring.sizes.together_seconds, MOST_FLOOD_SECONDS),
    )
    accepted = run_publishers(load)
    received = measuring.receiver.count()
    _received(measuring, accepted.acknowledged * ours.cast.lanes, already=already)
    name = f"  {FLOOD_CONNECTIONS} connections without a pause"
    return [
        at_most(f"{name}: accepted", accepted.rate, None, unit="/s"),
        at_most(f"{name}: delivered meanwhile", received / accepted.seconds, None, unit="/s"),
    ]


def _received(
    measuring: Measuring, expected: int, *, already: int, is_ordered: bool = False
) -> float:
    """Wait until all deliveries have arrived and are recorded, and return their rate."""
    wait_until(expected, measuring.receiver.count, seconds=STALL_SECONDS)
    tally = measuring.receiver.tally()
    wait_until(already + expected, stage.delivered, seconds=STALL_SECONDS)
    measuring.receive(tally, expected=expected, already=already, is_ordered=is_ordered)
    return rate_of(tally)


@contextmanager
def sampled(count: Callable[[], int]) -> Iterator[list[int]]:
    """Sample the count at intervals until leaving; yield the growing list."""
    counts: list[int] = []
    is_over = threading.Event()

    def sample() -> None:
        while not is_over.wait(SAMPLE_SECONDS):
            counts.append(count())

    thread = threading.Thread(target=sample, name="samples")
    thread.start()
    try:
        yield counts
    finally:
        is_over.set()
        thread.join()


def _at(counts: Sequence[int], percent: int) -> int:
    return counts[len(counts) * percent // 100] if counts else 0


def _processes(product: Started) -> list[usage.Process]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        (pid,) = cursor.fetchone() or (0,)
    return [*usage.tree(product.pid), *usage.database(pid)]


SCENARIOS = {"ten": ten_subscribers, "hundred": hundred_subscribers}
