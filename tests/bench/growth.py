"""A step of `bench scale`: the speed of an installation with so many stored deliveries."""

import secrets
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from statistics import median

from django.db import connection, transaction
from django.utils import timezone

from delivery.maintenance import retention
from delivery.models import RetentionRun, RetentionState
from tests.bench import latency, stage
from tests.bench.children import run_publishers
from tests.bench.console import page_medians
from tests.bench.latency import LatencyLoad
from tests.bench.measuring import STALL_SECONDS, Measuring, rate_of, wait_until
from tests.bench.publishers import PublishLoad
from tests.bench.results import BenchResult, at_most, percentile
from tests.bench.stage import BenchSetup
from tests.bench.started import Started, started_beside
from tests.bench.web import web

SUBSCRIBERS, CONNECTIONS = 10, 16
RATE = 2.0
PAGES = ("overview", "messages", "deliveries", "deliveries, far behind")


@dataclass(frozen=True, slots=True, kw_only=True)
class GrowthStep:
    """`speed` is the delivered rate and the p50 and p99 of the latency; pages in milliseconds."""

    speed: tuple[float, float, float]
    accepted: float
    pages: Mapping[str, float]
    retention_ms: float

    def others(self, stored: str) -> Iterator[BenchResult]:
        yield at_most(f"{stored} stored deliveries: accepted", self.accepted, None, unit="/s")
        for page, milliseconds in self.pages.items():
            yield at_most(f"  page: {page}, median", milliseconds, None, unit="ms")
        yield at_most("  a retention pass without removals", self.retention_ms, None, unit="ms")


def beside_stored(measuring: Measuring, stored: int) -> GrowthStep:
    """Fill up the database to so many deliveries; publish, deliver, read pages and run retention.

    The configuration is the same at each step: the configuration of the largest.
    """
    _fill(stored, configured=max(measuring.sizes.stored))
    cast = stage.make_cast(f"stored{stored}", url=measuring.receiver.url, lanes=SUBSCRIBERS)
    cast.let_in(hanging=False)
    messages = max(measuring.sizes.published_deliveries // SUBSCRIBERS, CONNECTIONS)
    accepted, rates, latencies = [], [], []
    for _ in measuring.rounds(f"{stored:,} stored", measuring.sizes.growth_rounds):
        cast.let_in(hanging=False)
        accepted.append(_accept(cast, messages))
        cast.hold()
        with started_beside() as product:
            rates.append(drain(measuring, cast, messages=messages))
            latencies.append(two_a_second(measuring, cast, product))
    with web() as port:
        pages = page_medians(port, PAGES, rounds=measuring.sizes.page_rounds)
    return GrowthStep(
        speed=(median(rates), *map(median, zip(*latencies, strict=True))),
        accepted=median(accepted),
        pages=pages,
        retention_ms=1000 * _retention_seconds(),
    )


def drain(measuring: Measuring, cast: BenchSetup, *, messages: int) -> float:
    """Release the backlog of a running product; return the rate of deliveries."""
    already, expected = stage.delivered(), messages * cast.lanes
    measuring.receiver.reset()
    cast.let_in(hanging=False)
    wait_until(expected, measuring.receiver.count, seconds=STALL_SECONDS)
    wait_until(already + expected, stage.delivered, seconds=STALL_SECONDS)
    tally = measuring.receiver.tally()
    measuring.receive(tally, expected=expected, already=already)
    return rate_of(tally)


def two_a_second(measuring: Measuring, cast: BenchSetup, product: Started) -> tuple[float, float]:
    """Return the p50 and p99 from publisher to receiver, in milliseconds."""
    name = f"{cast.event_type.name}-{secrets.token_hex(2)}"
    taken = latency.milliseconds(
        measuring, product, LatencyLoad(subscribers=cast.lanes, rate=RATE, name=name)
    )
    return percentile(taken, 50), percentile(taken, 99)


def _fill(stored: int, *, configured: int) -> None:
    """Let the tests' generator add the missing deliveries."""
    command = [sys.executable, "-m", "tests.support.many", "--more", "--deliveries", str(stored)]
    subprocess.run([*command, "--configured", str(configured)], check=True, stdout=sys.stderr)
    with connection.cursor() as cursor:
        # Otherwise the measured step pays for writing the generated rows to disk.
        cursor.execute("CHECKPOINT")


def _accept(cast: BenchSetup, messages: int) -> float:
    """Publish so many messages by single posts while no sender runs, and return the rate."""
    with web() as port:
        load = PublishLoad(
            port=port,
            event_type=cast.event_type.name,
            key=cast.make_key(),
            connections=CONNECTIONS,
            messages=messages,
            batch=1,
        )
        return run_publishers(load).rate


def _retention_seconds() -> float:
    """Run a pass of retention as the chores do; the generated history is too young for it."""
    began, now = time.monotonic(), timezone.now()
    run = retention.start_pass(actor="bench", now=now)
    while RetentionRun.objects.get(pk=run.pk).state == RetentionState.RUNNING:
        with transaction.atomic():
            retention.advance_pass(now)
    return time.monotonic() - began
