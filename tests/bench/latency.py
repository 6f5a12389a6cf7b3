"""`bench latency`: the time from a message's post to the receivers, in an idle product.

Each message goes to all subscribers. Publisher and receiver share the clock of this machine. The
times of a bare chain, with the same publisher at the same pace, and of a POST and a durable commit
are printed alongside.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from tests.bench import children, stage
from tests.bench.measuring import STALL_SECONDS, Measuring, wait_until
from tests.bench.paced import PacedPublisher, PublishingPace
from tests.bench.results import BenchResult, at_most, percentile
from tests.bench.started import Started, started_beside

# Connections are opened, statements prepared and lanes served before the measurement.
WARM_UP_SECONDS = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencyLoad:
    """A number of subscribers, the messages per second of each, and limits in milliseconds."""

    subscribers: int
    rate: float
    p50: float | None = None
    p99: float | None = None
    name: str = "latency"


LOADS = (
    LatencyLoad(subscribers=10, rate=2, p50=4.5, p99=15),
    LatencyLoad(subscribers=10, rate=50, p50=4.5, p99=15),
    LatencyLoad(subscribers=100, rate=5, p50=12, p99=40),
)


def publish_to_received(measuring: Measuring) -> list[BenchResult]:
    with started_beside() as product:
        return [result for load in LOADS for result in _measured(measuring, product, load)]


def _measured(measuring: Measuring, product: Started, load: LatencyLoad) -> list[BenchResult]:
    latencies = milliseconds(measuring, product, load)
    chain = _bare_milliseconds(measuring, load)
    bare = measuring.bare_round_trips(measuring.sizes.bare_round_trips)
    name = f"publish to received, {load.subscribers} × {load.rate:g}/s"
    return [
        at_most(f"{name}, p50", percentile(latencies, 50), load.p50, unit="ms"),
        at_most(f"{name}, p99", percentile(latencies, 99), load.p99, unit="ms"),
        at_most("  the same by a bare chain, p50", percentile(chain, 50), None, unit="ms"),
        at_most("  the same by a bare chain, p99", percentile(chain, 99), None, unit="ms"),
        at_most("  a bare POST and commit, p50", 1000 * percentile(bare, 50), None, unit="ms"),
        at_most("  a bare POST and commit, p99", 1000 * percentile(bare, 99), None, unit="ms"),
    ]


def milliseconds(measuring: Measuring, product: Started, load: LatencyLoad) -> list[float]:
    """Publish at the load's rate, and return the latency of each delivery."""
    cast = stage.make_cast(
        f"{load.name}-{load.subscribers}x{load.rate:g}",
        url=measuring.receiver.url,
        lanes=load.subscribers,
    )
    cast.let_in(hanging=False)
    pace = PublishingPace(
        port=product.port,
        event_type=cast.event_type.name,
        key=cast.make_key(),
        rate=load.rate,
        seconds=min(WARM_UP_SECONDS, measuring.sizes.latency_seconds),
    )
    _posted(measuring, pace, subscribers=load.subscribers)
    already = stage.delivered()
    pace = replace(pace, seconds=measuring.sizes.latency_seconds)
    moments = _posted(measuring, pace, subscribers=load.subscribers)
    expected = len(moments) * load.subscribers
    wait_until(already + expected, stage.delivered, seconds=STALL_SECONDS)
    measuring.receive(
        measuring.receiver.tally(), expected=expected, already=already, is_ordered=False
    )
    return _taken(measuring, moments)


def _bare_milliseconds(measuring: Measuring, load: LatencyLoad) -> list[float]:
    """Do the same with a bare chain instead of the product."""
    with children.chain(measuring.receiver.url, subscribers=load.subscribers) as port:
        pace = PublishingPace(
            port=port,
            event_type="bare",
            key="bare",
            rate=load.rate,
            seconds=min(WARM_UP_SECONDS, measuring.sizes.latency_seconds),
        )
        _posted(measuring, pace, subscribers=load.subscribers)
        pace = replace(pace, seconds=measuring.sizes.latency_seconds)
        return _taken(measuring, _posted(measuring, pace, subscribers=load.subscribers))


def _posted(measuring: Measuring, pace: PublishingPace, *, subscribers: int) -> Mapping[int, float]:
    """Publish at the pace and wait for all requests; return the moment of each message."""
    measuring.receiver.reset()
    publisher = PacedPublisher(pace)
    publisher.publish()
    expected = len(publisher.posted) * subscribers
    wait_until(expected, measuring.receiver.count, seconds=STALL_SECONDS)
    return publisher.posted


def _taken(measuring: Measuring, moments: Mapping[int, float]) -> list[float]:
    return [1000 * (at - moments[id]) for id, at in measuring.receiver.arrivals() if id in moments]


SCENARIOS = {"idle-lanes": publish_to_received}
