"""`bench endurance`: a started product at 60 % of the maximum rate for half an hour.

The time is divided into equal parts. Latency, memory and the table of waiting deliveries in the
last part are compared with those of the second part: the first still warms up. The table of settled
deliveries grows with each delivery, so the room per delivery is compared.
"""

import time
from dataclasses import dataclass

from django.db import connection

from tests.bench import stage, usage
from tests.bench.children import run_publishers
from tests.bench.measuring import STALL_SECONDS, Measuring, wait_until
from tests.bench.paced import PacedPublisher, PublishingPace
from tests.bench.publishers import PublishLoad
from tests.bench.results import BenchResult, at_most, percentile
from tests.bench.started import Started, started_beside

SUBSCRIBERS = 10
PARTS = 6
OF_THE_MAXIMUM = 0.6
# The most for the last part, relative to the second part.
MOST_LATENCY, MOST_MEMORY, MOST_ROOM = 1.2, 1.1, 1.2
FLOOD_CONNECTIONS, FLOOD_SECONDS, MOST_FLOODED = 16, 5.0, 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """The results of a part of the time; sizes are in bytes, at the end."""

    p50: float
    p99: float
    megabytes: float
    waiting: int
    dead: int
    settled_per_row: float


def half_an_hour(measuring: Measuring) -> list[BenchResult]:
    stage.clear()
    cast = stage.make_cast("endurance", url=measuring.receiver.url, lanes=SUBSCRIBERS)
    cast.let_in(hanging=False)
    with started_beside() as product:
        key = cast.make_key()
        most = _flooded(measuring, product, cast, key)
        pace = PublishingPace(
            port=product.port,
            event_type=cast.event_type.name,
            key=key,
            rate=OF_THE_MAXIMUM * most / SUBSCRIBERS,
            seconds=measuring.sizes.endurance_seconds / PARTS,
        )
        parts = [_part(measuring, product, pace) for _ in measuring.rounds("endurance", PARTS)]
    return [
        at_most("published and delivered at once", most, None, unit="/s"),
        at_most("kept up for the whole time", OF_THE_MAXIMUM * most, None, unit="/s"),
        *_compared(parts),
    ]


def _flooded(measuring: Measuring, product: Started, cast: stage.BenchSetup, key: str) -> float:
    """Publish without a pause, and return the deliveries accepted and delivered per second."""
    load = PublishLoad(
        port=product.port,
        event_type=cast.event_type.name,
        key=key,
        connections=FLOOD_CONNECTIONS,
        messages=MOST_FLOODED,
        batch=1,
        seconds=min(FLOOD_SECONDS, measuring.sizes.endurance_seconds),
    )
    measuring.receiver.reset()
    already = stage.delivered()
    began = time.monotonic()
    accepted = run_publishers(load).acknowledged
    _receive(measuring, accepted * SUBSCRIBERS, already=already)
    return accepted * SUBSCRIBERS / (time.monotonic() - began)


def _part(measuring: Measuring, product: Started, pace: PublishingPace) -> Part:
    measuring.receiver.reset()
    already = stage.delivered()
    publisher = PacedPublisher(pace)
    publisher.publish()
    megabytes = usage.megabytes(usage.tree(product.pid))
    waiting, dead, settled = _sizes()
    _receive(measuring, len(publisher.posted) * SUBSCRIBERS, already=already)
    latencies = [
        1000 * (at - publisher.posted[id])
        for id, at in measuring.receiver.arrivals()
        if id in publisher.posted
    ]
    return Part(
        p50=percentile(latencies, 50),
        p99=percentile(latencies, 99),
        megabytes=megabytes,
        waiting=waiting,
        dead=dead,
        settled_per_row=settled / max(stage.delivered(), 1),
    )


def _receive(measuring: Measuring, expected: int, *, already: int) -> None:
    wait_until(expected, measuring.receiver.count, seconds=STALL_SECONDS)
    wait_until(already + expected, stage.delivered, seconds=STALL_SECONDS)
    measuring.receive(
        measuring.receiver.tally(), expected=expected, already=already, is_ordered=False
    )


def _sizes() -> tuple[int, int, int]:
    """Return the bytes of the waiting deliveries, their dead rows, and those of settled deliveries.

    The sizes include the indexes.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_total_relation_size('delivery_waiting'), "
            "pg_stat_get_dead_tuples('delivery_waiting'::regclass), "
            "(SELECT sum(pg_total_relation_size(relid)) "
            "FROM pg_partition_tree('delivery_settled'))"
        )
        waiting, dead, settled = cursor.fetchone() or (0, 0, 0)
        return int(waiting), int(dead), int(settled)


def _compared(parts: list[Part]) -> list[BenchResult]:
    second, last = parts[1], parts[-1]
    reported = [
        at_most(f"  part {number}: {name}", value, None, unit=unit)
        for number, part in enumerate(parts, start=1)
        for name, value, unit in (
            ("p50", part.p50, "ms"),
            ("p99", part.p99, "ms"),
            ("memory (PSS)", part.megabytes, "MB"),
            ("waiting deliveries and indexes", part.waiting / 1e6, "MB"),
            ("dead rows among them", part.dead, ""),
            ("a settled delivery", part.settled_per_row, "bytes"),
        )
    ]
    return [
        at_most("p50 of the last part", last.p50, MOST_LATENCY * second.p50, unit="ms"),
        at_most("p99 of the last part", last.p99, MOST_LATENCY * second.p99, unit="ms"),
        at_most("memory (PSS)", last.megabytes, MOST_MEMORY * second.megabytes, unit="MB"),
        at_most(
            "waiting deliveries and indexes",
            last.waiting / 1e6,
            MOST_ROOM * second.waiting / 1e6,
            unit="MB",
        ),
        at_most(
            "a settled delivery",
            last.settled_per_row,
            MOST_ROOM * second.settled_per_row,
            unit="bytes",
        ),
        *reported,
    ]


SCENARIOS = {"steady": half_an_hour}
