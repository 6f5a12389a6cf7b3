"""What stops a lane: an outcome that blocks or suspends, a fault of ours, a run that led to nothing."""

import time

from delivery.senders.desk import Desk
from delivery.senders.entries import LaneChange, Settlement
from delivery.senders.parcel import Endpoint, Parcel
from delivery.senders.suspending import suspend
from delivery.senders.topic_lane import TopicLane
from delivery.states import LaneState
from delivery.verdict import Rules, Step, Verdict, pause_seconds

STOPPING = frozenset({Step.BLOCK, Step.AGAIN, Step.SUSPEND})
# What left the lane's stream for good, or for the retry lane.
_GOES_ON = frozenset({Step.NEXT, Step.RETRY_LANE})


class Tally:
    """What became of a run so far."""

    __slots__ = ("fresh", "last_skipped", "reason", "rules", "settled", "skipped", "skipped_settled")

    def __init__(self, parcels: list[Parcel]) -> None:
        self.skipped = sum(parcel.is_skipped for parcel in parcels)
        self.fresh = len(parcels) - self.skipped
        self.settled = 0
        self.skipped_settled = 0
        self.last_skipped: Parcel | None = None
        self.reason = ""
        self.rules: Rules | None = None

    @property
    def is_fruitless(self) -> bool:
        """Whether some were tried and none was settled."""
        return self.rules is not None and not self.settled

    def count(self, parcel: Parcel, settlement: Settlement, rules: Rules) -> None:
        if settlement.verdict.step in _GOES_ON:
            self.settled += 1
            self.skipped_settled += parcel.is_skipped
            return
        self.last_skipped = self.last_skipped or parcel
        self.reason = settlement.outcome.reason
        self.rules = rules


async def stop(lane: TopicLane, desk: Desk, settlement: Settlement, endpoint: Endpoint) -> None:
    """Commit an outcome that stops the lane for a while, or until it is resumed."""
    if settlement.verdict.step is Step.SUSPEND:
        await suspend(lane, desk, settlement, endpoint)
        return
    lane.failures += 1
    wait = _wait_seconds(settlement.verdict, endpoint.rules, failures=lane.failures)
    change = _blocked(lane, settlement.delivery_id, reason=settlement.outcome.reason, wait_seconds=wait)
    await desk.settler.commit(lane.id, settlement, change)
    lane.pause(wait)


def _blocked(lane: TopicLane, delivery_id: int, *, reason: str, wait_seconds: float) -> LaneChange:
    """Stop the lane's run. It is to pause once that is committed: before, its row says that the last pause is over."""
    lane.forget_runs()
    lane.is_blocked = True
    return LaneChange(
        lane_id=lane.id,
        state=LaneState.BLOCKED,
        reason=reason,
        delivery_id=delivery_id,
        failures=lane.failures,
        wait_seconds=wait_seconds,
    )


def _wait_seconds(verdict: Verdict, rules: Rules, *, failures: int) -> float:
    if verdict.step is Step.AGAIN:
        return verdict.wait_seconds or 0.0
    # An endpoint is never asked earlier than it wished, nor than the pause would be over.
    return max(verdict.wait_seconds or 0.0, pause_seconds(rules, failures=failures))


async def stop_without_trying(lane: TopicLane, desk: Desk, parcel: Parcel) -> None:
    """A fault on our side never costs the receiver an attempt: wait until it is mended."""
    endpoint = desk.endpoints[parcel.subscription_id]
    lane.failures += 1
    wait = pause_seconds(endpoint.rules, failures=lane.failures)
    change = _blocked(lane, parcel.delivery_id, reason=endpoint.fault, wait_seconds=wait)
    await desk.settler.commit(lane.id, change)
    lane.pause(wait)


async def judge_run(lane: TopicLane, desk: Desk, tally: Tally) -> None:
    """At the end of a run: pause when nothing came of it.

    Skipped ones that failed again pause by themselves, so that one poisoned message neither
    stops fresh ones nor is tried with each of them. A run in which fresh ones failed,
    and nothing was settled, tells of a sick endpoint: the lane pauses like a blocked one.
    """
    if tally.skipped and not tally.skipped_settled and tally.rules:
        lane.skip_failures += 1
        lane.skipped_due = time.monotonic() + pause_seconds(tally.rules, failures=lane.skip_failures)
    elif tally.skipped_settled:
        lane.skip_failures = 0
    if tally.settled or tally.last_skipped is None or tally.rules is None:
        return
    if tally.fresh or lane.failures:
        lane.failures += 1
        wait = pause_seconds(tally.rules, failures=lane.failures)
        change = _blocked(lane, tally.last_skipped.delivery_id, reason=tally.reason, wait_seconds=wait)
        await desk.settler.commit(lane.id, change)
        lane.pause(wait)
