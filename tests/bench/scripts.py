"""`bench scripts`: an unscripted lane drains its backlog alone, and beside lanes with scripts.

It has a receiver of its own. What other lanes take from the machine in any case is measured in the
same round, by as many lanes without scripts. Only the time counts in which all were at work.
"""

from dataclasses import dataclass

from subscriptions.models import Subscription
from tests.bench import children, stage
from tests.bench.measuring import (
    COMMIT_SECONDS,
    STALL_SECONDS,
    START_SECONDS,
    Measuring,
    wait_until,
)
from tests.bench.results import BenchResult, compare

# The vendor's sample of a transformation: a map of fields.
SCRIPT = """
var fields = $inmessage;
$outmessage = { type: $inheader['Content-Type'], summary: fields.original };
"""
WANTED_RATE = 1_000
# Of the lane's rate beside as many lanes without scripts.
WANTED_BESIDE = 0.9


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneBesideOthers:
    """The unscripted lane with its receiver, and the setups of the other lanes."""

    measuring: Measuring
    receiver: children.ReceiverProcess
    lane: stage.BenchSetup

    def rates(
        self, messages: int, others: stage.BenchSetup | None, of_others: int = 0
    ) -> tuple[float, float]:
        """Drain the backlogs, and return the rates of the lane and of the others together."""
        backlogs = [(self.lane, messages), *([(others, of_others)] if others else [])]
        receivers = [self.receiver, self.measuring.receiver][: len(backlogs)]
        expected = sum(count * cast.lanes for cast, count in backlogs)
        stage.clear()
        for receiver in receivers:
            receiver.reset()
        for cast, count in backlogs:
            cast.let_in(hanging=False)
            cast.publish(count)
            cast.hold()
        with children.senders(self.measuring.sizes.senders):
            wait_until(self.measuring.sizes.senders, stage.senders, seconds=START_SECONDS)
            for cast, _ in backlogs:
                cast.let_in(hanging=False)
            wait_until(
                expected, lambda: sum(one.count() for one in receivers), seconds=STALL_SECONDS
            )
            wait_until(expected, stage.delivered, seconds=COMMIT_SECONDS)
        for receiver, (cast, count) in zip(receivers, backlogs, strict=True):
            self._receive(receiver, expected=count * cast.lanes)
        lane, other = _rates_meanwhile([[at for _, at in one.arrivals()] for one in receivers])
        return lane, other

    def _receive(self, receiver: children.ReceiverProcess, *, expected: int) -> None:
        self.measuring.receive(receiver.tally(), expected=expected)


def _rates_meanwhile(arrivals: list[list[float]]) -> tuple[float, float]:
    """Return the rates in the time that all lists share; the second is 0 if there is one list."""
    begin, end = max(times[0] for times in arrivals), min(times[-1] for times in arrivals)
    rates = [
        sum(begin <= at <= end for at in times) / max(end - begin, 0.001) for times in arrivals
    ]
    return rates[0], sum(rates[1:])


def lane_beside_scripts(measuring: Measuring) -> list[BenchResult]:
    """Drain the lane alone, beside lanes without scripts, and beside as many with scripts."""
    sizes = measuring.sizes
    url, lanes = measuring.receiver.url, sizes.scripted_lanes
    with children.receiver() as receiver:
        lane = stage.make_cast("unscripted", url=receiver.url, lanes=1)
        without = stage.make_cast("others", url=url, lanes=lanes)
        scripted = stage.make_cast("scripted", url=url, lanes=lanes)
        Subscription.objects.filter(event_type=scripted.event_type).update(script=SCRIPT)
        beside = LaneBesideOthers(measuring=measuring, receiver=receiver, lane=lane)
        alone, beside_others, beside_scripts, of_scripts = [], [], [], []
        for _ in measuring.rounds("scripts", sizes.script_rounds):
            alone.append(beside.rates(sizes.unscripted, None)[0])
            beside_others.append(
                beside.rates(sizes.unscripted, without, sizes.scripted * 4 // lanes)[0]
            )
            rate, rate_of_scripts = beside.rates(
                sizes.unscripted, scripted, sizes.scripted // lanes
            )
            beside_scripts.append(rate)
            of_scripts.append(rate_of_scripts)
    wanted = [float(WANTED_RATE)] * len(of_scripts)
    return [
        compare(f"{lanes} scripted lanes beside an unscripted one", of_scripts, wanted, wanted=1),
        compare(
            "the unscripted lane, of its rate beside lanes without scripts",
            beside_scripts,
            beside_others,
            wanted=WANTED_BESIDE,
        ),
    ]


SCENARIOS = {"beside-scripts": lane_beside_scripts}
