"""`bench scripts`: lanes with scripts drain a backlog, and a lane without scripts keeps its speed.

First the scripted lanes send as fast as they can. Then they send at a pace of WANTED_RATE together,
and so do as many lanes without scripts in their turn: the unscripted lane beside them has a
separate receiver. It sends as fast as it can, and then at a pace of LANE_RATE, as a lane in use
does. Only the time counts in which all were at work. If the cores were busy all the time, the lane
was slower because the machine was full.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from statistics import median

from delivery.senders.lanes.stock import LATE_SECONDS
from subscriptions.models import Subscription
from tests.bench import children, stage, usage
from tests.bench.measuring import (
    COMMIT_SECONDS,
    STALL_SECONDS,
    START_SECONDS,
    Measuring,
    wait_until,
)
from tests.bench.results import BenchResult, at_most, compare, percentile

# The vendor's sample of a transformation: a map of fields.
SCRIPT = """
var fields = $inmessage;
$outmessage = { type: $inheader['Content-Type'], summary: fields.original };
"""
WANTED_RATE = 1_000
# Of the lane's rate beside as many lanes without scripts, at the same pace.
WANTED_BESIDE = 0.9
# The pace of the lane, where it does not send as fast as it can.
LANE_RATE = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneRates:
    """Deliveries per second, and the number of busy cores meanwhile.

    `delays` are the seconds by which each delivery of a lane with a pace arrived late.
    """

    lane: float
    others: float
    busy_cores: float
    delays: Sequence[float] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneBesideOthers:
    """The unscripted lane with the receiver."""

    measuring: Measuring
    receiver: children.ReceiverProcess
    lane: stage.BenchSetup

    def rates(
        self,
        others: stage.BenchSetup,
        *,
        pace: float | None = None,
        lane_pace: float | None = None,
    ) -> LaneRates:
        """Drain the backlogs, and return the rates of the lane and of the others together.

        With both paces the backlogs last equally long.
        """
        sizes = self.measuring.sizes
        unscripted = sizes.unscripted
        if pace is not None and lane_pace is not None:
            unscripted = round(sizes.scripted * lane_pace / pace)
        backlogs = [(self.lane, unscripted), (others, sizes.scripted // others.lanes)]
        receivers = [self.receiver, self.measuring.receiver]
        expected = sum(count * cast.lanes for cast, count in backlogs)
        stage.clear()
        for receiver in receivers:
            receiver.reset()
        for cast, count in backlogs:
            cast.let_in(hanging=False)
            cast.publish(count)
            cast.hold()
        if pace is not None:
            others.keep_pace(pace / others.lanes)
        if lane_pace is not None:
            self.lane.keep_pace(lane_pace)
        busy: list[tuple[float, float]] = []

        def received() -> int:
            busy.append((time.monotonic(), usage.busy_seconds()))
            return sum(receiver.count() for receiver in receivers)

        with children.senders(self.measuring.sizes.senders):
            wait_until(self.measuring.sizes.senders, stage.senders, seconds=START_SECONDS)
            for cast, _ in backlogs:
                cast.let_in(hanging=False)
            wait_until(expected, received, seconds=STALL_SECONDS)
            wait_until(expected, stage.delivered, seconds=COMMIT_SECONDS)
        for receiver, (cast, count) in zip(receivers, backlogs, strict=True):
            self._receive(receiver, expected=count * cast.lanes)
        of_lane, of_others = ([at for _, at in endpoint.arrivals()] for endpoint in receivers)
        return _rates_meanwhile(of_lane, of_others, busy, lane_pace=lane_pace)

    def _receive(self, receiver: children.ReceiverProcess, *, expected: int) -> None:
        self.measuring.receive(receiver.tally(), expected=expected)


def _rates_meanwhile(
    lane: list[float],
    others: list[float],
    busy: Sequence[tuple[float, float]],
    *,
    lane_pace: float | None,
) -> LaneRates:
    """Return the rates in the time in which both arrived; `busy` are moments and busy seconds."""
    begin, end = max(lane[0], others[0]), min(lane[-1], others[-1])
    seconds = max(end - begin, 0.001)
    of_lane, of_others = (sum(begin <= at <= end for at in times) for times in (lane, others))
    meanwhile = [sample for sample in busy if begin <= sample[0] <= end] or busy
    (first_at, first), (last_at, last) = meanwhile[0], meanwhile[-1]
    return LaneRates(
        lane=of_lane / seconds,
        others=of_others / seconds,
        busy_cores=(last - first) / max(last_at - first_at, 0.001),
        delays=_delays([at for at in lane if at <= end], lane_pace) if lane_pace else (),
    )


def _delays(arrivals: Sequence[float], rate: float) -> list[float]:
    """Return by how many seconds each arrived after the pace's time: 0 is the quickest of them."""
    due, late = arrivals[0], []
    for at in arrivals:
        late.append(at - due)
        # As the lane's `Pace`: a longer delay is not made up for, and moves all later deliveries.
        due = max(due, at - LATE_SECONDS) + 1 / rate
    return [seconds - min(late) for seconds in late]


@dataclass(frozen=True, slots=True)
class Beside:
    """Rounds of the lane beside others without scripts and beside others with scripts."""

    others: list[LaneRates] = field(default_factory=list)
    scripts: list[LaneRates] = field(default_factory=list)

    def results(self, name: str) -> list[BenchResult]:
        sides = [("without", self.others), ("with", self.scripts)]
        return [
            compare(
                f"{name} beside {WANTED_RATE:,}/s, with and without scripts",
                [script.lane for script in self.scripts],
                [other.lane for other in self.others],
                wanted=WANTED_BESIDE,
            ),
            *(result for side, rounds in sides for result in _explained(side, rounds)),
        ]


def _explained(side: str, rounds: Sequence[LaneRates]) -> Iterator[BenchResult]:
    """Yield the busy cores, and the delays of a lane with a pace."""
    cores = median(run.busy_cores for run in rounds)
    yield at_most(f"  busy cores, {side} scripts", cores, None, unit="cores")
    delays = [1000 * delay for run in rounds for delay in run.delays]
    for percent in (50, 99) if delays else ():
        delay = percentile(delays, percent)
        yield at_most(
            f"  delay behind its pace, {side} scripts, p{percent}", delay, None, unit="ms"
        )


def lane_beside_scripts(measuring: Measuring) -> list[BenchResult]:
    """Drain scripted lanes beside the lane, and both kinds of lanes at a pace beside it."""
    sizes = measuring.sizes
    url, lanes = measuring.receiver.url, sizes.scripted_lanes
    with children.receiver() as receiver:
        lane = stage.make_cast("unscripted", url=receiver.url, lanes=1)
        without = stage.make_cast("others", url=url, lanes=lanes)
        scripted = stage.make_cast("scripted", url=url, lanes=lanes)
        Subscription.objects.filter(event_type=scripted.event_type).update(script=SCRIPT)
        beside = LaneBesideOthers(measuring=measuring, receiver=receiver, lane=lane)
        of_scripts, full, paced = [], Beside(), Beside()
        for _ in measuring.rounds("scripts", sizes.script_rounds):
            of_scripts.append(beside.rates(scripted).others)
            for rounds, lane_pace in ((full, None), (paced, LANE_RATE)):
                rounds.others.append(beside.rates(without, pace=WANTED_RATE, lane_pace=lane_pace))
                rounds.scripts.append(beside.rates(scripted, pace=WANTED_RATE, lane_pace=lane_pace))
    wanted = [float(WANTED_RATE)] * len(of_scripts)
    return [
        compare(f"{lanes} scripted lanes beside an unscripted one", of_scripts, wanted, wanted=1),
        *full.results("an unscripted lane"),
        *paced.results(f"a lane at {LANE_RATE}/s"),
    ]


SCENARIOS = {"beside-scripts": lane_beside_scripts}
