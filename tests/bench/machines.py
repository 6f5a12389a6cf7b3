"""`bench machines`: one, two and four instances on one PostgreSQL, directly and behind PgBouncer.

All of them run on this machine. So they show the cost of another instance, and how the work is
shared and handed over, not how much faster more machines are.
"""

import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from django.conf import settings
from django.db import connection

from config.settings import WALKS_INDEXES
from tests.bench import stage, usage
from tests.bench.growth import drain
from tests.bench.instances import Instances
from tests.bench.measuring import STALL_SECONDS, Measuring, wait_until
from tests.bench.paced import PacedPublisher, PublishingPace
from tests.bench.results import BenchResult, at_most, percentile
from tests.bench.web import web
from tests.system.faults import pgbouncer

# Of the rate of a single instance; other instances on the same machine take some of it.
WANTED = 0.8
MOST_HAND_OVER_SECONDS = 2.0
# The instance is killed in the middle of the time.
KILLED_AT = 0.5
# The database server of the benchmark allows 150.
SESSIONS = 140


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """The cost of a delivery: µs of a processor by part, bytes of WAL, and flushes."""

    computed: Mapping[str, float]
    wal: float
    flushes: float


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineSample:
    """A round with so many instances; latencies in milliseconds.

    `shares` are the requests of each instance while the backlog was drained. `handed_over` is the
    longest time from publisher to receiver after an instance was killed, in seconds; 0 if none was.
    """

    rate: float
    shares: Sequence[int]
    drained: Spent
    latencies: Sequence[float]
    paced: Spent
    handed_over: float = 0.0
    repeated: int = 0


class MachineRound:
    """A round: the instances, the subscribers, and a web server for publishing."""

    def __init__(self, measuring: Measuring, cast: stage.BenchSetup, *, port: int) -> None:
        self._measuring = measuring
        self._cast = cast
        self._port = port
        self._key = cast.make_key()

    def sample(self, instances: Instances, count: int) -> MachineSample:
        sizes = self._measuring.sizes
        instances.grow(count, senders=sizes.senders)
        # The work after a start takes some time of the processors, too.
        time.sleep(sizes.machine_settle_seconds)
        rate, drained = self._drained(instances)
        shares = instances.shares(self._measuring.receiver)
        latencies, paced = self._paced(instances)
        handed_over, repeated = self._killed(instances) if count > 1 else (0.0, 0)
        return MachineSample(
            rate=rate,
            shares=shares,
            drained=drained,
            latencies=latencies,
            paced=paced,
            handed_over=handed_over,
            repeated=repeated,
        )

    def _drained(self, instances: Instances) -> tuple[float, Spent]:
        messages = max(self._measuring.sizes.machine_backlog // self._cast.lanes, 1)
        self._cast.gather()
        self._cast.publish(messages)
        before = _Before(instances)
        rate = drain(self._measuring, self._cast, messages=messages)
        return rate, before.spent(messages * self._cast.lanes)

    def _paced(self, instances: Instances) -> tuple[list[float], Spent]:
        publisher, already = self._publisher()
        before = _Before(instances)
        publisher.publish()
        latencies = self._received(publisher, already=already)
        return [1000 * seconds for seconds in latencies.values()], before.spent(len(latencies))

    def _killed(self, instances: Instances) -> tuple[float, int]:
        """Kill the busiest instance under load; return the longest latency and the repetitions."""
        publisher, already = self._publisher()
        before = stage.lost_attempts()
        with ThreadPoolExecutor(max_workers=1) as pool:
            published = pool.submit(publisher.publish)
            time.sleep(KILLED_AT * self._measuring.sizes.machine_seconds)
            instances.kill_busiest(self._measuring.receiver)
            published.result()
        latencies = self._received(publisher, already=already, lost_before=before)
        return max(latencies.values()), stage.lost_attempts() - before

    def _publisher(self) -> tuple[PacedPublisher, int]:
        sizes = self._measuring.sizes
        self._measuring.receiver.reset()
        pace = PublishingPace(
            port=self._port,
            event_type=self._cast.event_type.name,
            key=self._key,
            rate=sizes.machine_rate,
            seconds=sizes.machine_seconds,
        )
        return PacedPublisher(pace), stage.delivered()

    def _received(
        self, publisher: PacedPublisher, *, already: int, lost_before: int | None = None
    ) -> dict[tuple[int, int], float]:
        """Return the seconds until each delivery came first, by message and place in the order.

        Only the repeat of an attempt left without an outcome by a crash may come twice.
        """
        receiver = self._measuring.receiver
        expected = len(publisher.posted) * self._cast.lanes
        wait_until(expected, receiver.count, seconds=STALL_SECONDS)
        wait_until(already + expected, stage.delivered, seconds=STALL_SECONDS)
        marked = 0 if lost_before is None else stage.lost_attempts() - lost_before
        self._measuring.receive(
            receiver.tally(), expected=expected, already=already, is_ordered=False, marked=marked
        )
        found: dict[tuple[int, int], float] = {}
        places: defaultdict[int, int] = defaultdict(int)
        for id, at in receiver.arrivals():
            if id in publisher.posted:
                found[id, places[id]] = at - publisher.posted[id]
                places[id] += 1
        return found


class _Before:
    """The work computed and written up to a moment."""

    def __init__(self, instances: Instances) -> None:
        self._processes = instances.processes()
        self._computed = usage.computed(self._processes)
        self._wal, self._flushes = stage.written()

    def spent(self, deliveries: int) -> Spent:
        """Return the cost of each of so many deliveries since then."""
        computed: Counter[str] = usage.computed(self._processes) - self._computed
        wal, flushes = stage.written()
        return Spent(
            computed={part: 1000 * computed[part] / deliveries for part in usage.PARTS},
            wal=(wal - self._wal) / deliveries,
            flushes=(flushes - self._flushes) / deliveries,
        )


def directly(measuring: Measuring) -> list[BenchResult]:
    return _measured(measuring, name="direct", url=settings.ENVIRONMENT.database_url)


def behind_pgbouncer(measuring: Measuring) -> list[BenchResult]:
    """Measure behind a pooler by session; the planner's settings belong to the role there."""
    if pgbouncer.PROGRAM is None:
        raise RuntimeError(f"no pgbouncer: {pgbouncer.HOW_TO_GET_IT}")
    _set_planner_of_role()
    with _folder() as folder:
        url = settings.ENVIRONMENT.database_url
        with pgbouncer.before(url, folder, sessions=SESSIONS) as through:
            return _measured(measuring, name="behind PgBouncer", url=through)


def _measured(measuring: Measuring, *, name: str, url: str) -> list[BenchResult]:
    sizes = measuring.sizes
    place = name.replace(" ", "-")
    cast = stage.make_cast(place, url=measuring.receiver.url, lanes=sizes.machine_lanes)
    samples: defaultdict[int, list[MachineSample]] = defaultdict(list)
    for _ in measuring.rounds(name, sizes.machine_rounds):
        stage.clear()
        with ExitStack() as stack:
            port = stack.enter_context(web({"DATABASE_URL": url}))
            instances = Instances(stack, DATABASE_URL=url)
            this_round = MachineRound(measuring, cast, port=port)
            for count in sizes.machines:
                samples[count].append(this_round.sample(instances, count))
    alone = [sample.rate for sample in samples[1]]
    return [
        result
        for count, found in samples.items()
        for result in _results(f"{count} × {name}", found, alone=alone)
    ]


def _results(
    name: str, samples: Sequence[MachineSample], *, alone: Sequence[float]
) -> Iterator[BenchResult]:
    ratios = [sample.rate / limit for sample, limit in zip(samples, alone, strict=True)]
    is_alone = len(samples[0].shares) == 1
    yield BenchResult(
        name=f"{name}: delivered, of one instance",
        value=median(sample.rate for sample in samples),
        unit="/s",
        limit=median(alone),
        ratio=median(ratios),
        wanted=None if is_alone else WANTED,
    )
    if not is_alone:
        yield from _shared(samples)
    yield from _spent("of a backlog", [sample.drained for sample in samples])
    for percent in (50, 99):
        found = median(percentile(sample.latencies, percent) for sample in samples)
        yield at_most(f"  publish to received, p{percent}", found, None, unit="ms")
    yield from _spent("published meanwhile", [sample.paced for sample in samples])


def _spent(which: str, found: Sequence[Spent]) -> Iterator[BenchResult]:
    name = f"  a delivery {which}"
    for part in usage.PARTS:
        cost = median(spent.computed[part] for spent in found)
        yield at_most(f"{name}, {part}", cost, None, unit="µs")
    yield at_most(f"{name}, WAL", median(spent.wal for spent in found), None, unit="bytes")
    flushes = 1000 * median(spent.flushes for spent in found)
    yield at_most(f"{name}, flushes of a thousand", flushes, None, unit="")


def _shared(samples: Sequence[MachineSample]) -> Iterator[BenchResult]:
    at_work = median(sum(share > 0 for share in sample.shares) for sample in samples)
    fairness = median(100 * min(sample.shares) / max(sample.shares) for sample in samples)
    yield at_most("  instances that sent", at_work, None, unit="")
    yield at_most("  least of the most that one sent", fairness, None, unit="%")
    yield at_most(
        "  one killed: longest from publisher to receiver",
        max(sample.handed_over for sample in samples),
        MOST_HAND_OVER_SECONDS,
        unit="s",
    )
    repeated = max(sample.repeated for sample in samples)
    yield at_most("  one killed: repeated, marked", repeated, None, unit="")


def _set_planner_of_role() -> None:
    with connection.cursor() as cursor:
        for option in WALKS_INDEXES:
            cursor.execute(f"ALTER ROLE CURRENT_USER SET {option.removeprefix('-c ')}")


@contextmanager
def _folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="inturn-bench-") as name:
        yield Path(name)


SCENARIOS = {"direct": directly, "pooled": behind_pgbouncer}
