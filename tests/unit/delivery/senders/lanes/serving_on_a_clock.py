"""A lane of the senders on a clock that is passed in; its deliveries are rows in memory.

They are read by the limits of its reads, as `read_runs.sql` does.
"""

from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace

from delivery.senders.lanes.lane import SenderLane
from delivery.senders.lanes.window import WHOLE_LANE
from delivery.senders.parcel import Group, Parcel
from delivery.senders.run_result import PieceLimits, RunResult
from delivery.states import OutcomeClass, Status
from delivery.verdict import NextStep
from tests.unit.delivery.senders.lanes.test_stock import serial
from tests.unit.delivery.senders.parcels import parcel
from tests.unit.delivery.test_verdict import TEAMFORGE, outcome

REFUSING, HEALTHY = 1, 2
MINUTE = 60.0


class SteppedClock:
    """A monotonic clock that a test sets."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@dataclass(slots=True)
class WaitingRow:
    """A waiting delivery, as its row in the database."""

    parcel: Parcel
    tried_at: float = 0.0


class ServedLane:
    """A lane that is served on a clock: an attempt takes 10 ms, everything else no time."""

    def __init__(
        self,
        clock: SteppedClock,
        *,
        skipped: int,
        refuses: Callable[[Parcel], bool],
        most: int = 500,
    ) -> None:
        self.clock = clock
        self.refuses = refuses
        self.lane: SenderLane = serial(max_queued_to_send=most, refill_level=most // 5)
        self.rows: dict[int, WaitingRow] = {}
        # When, to which subscription, and whether it had been skipped.
        self.requests: list[tuple[float, int, bool]] = []
        for _ in range(skipped):
            self.publish(REFUSING, is_skipped=True)

    def publish(self, subscription_id: int, *, is_skipped: bool = False) -> None:
        id = len(self.rows) + len(self.requests) + 1
        while id in self.rows:
            id += 1
        made = parcel(subscription_id, delivery_id=id)
        self.rows[id] = WaitingRow(replace(made, is_skipped=is_skipped))
        self.lane.notify()

    def serve(self, *, seconds: float, publications: Collection[tuple[float, int]] = ()) -> None:
        """Serve for so long; publications are of a moment from now, and a subscription."""
        due = sorted((self.clock.now + after, id) for after, id in publications)
        end = self.clock.now + seconds
        while self.clock.now < end:
            while due and due[0][0] <= self.clock.now:
                self.publish(due.pop(0)[1])
            if self._read_on() or self._send():
                continue
            self.lane.end_idle_stop()
            wait = self.lane.seconds_to_wait(5.0) or 0.0
            following = due[0][0] if due else end
            if self.clock.now + wait >= following:
                self.clock.now = following
            else:
                self.clock.now += wait
                self.lane.record_time()

    def requests_a_minute(self, subscription_id: int) -> list[int]:
        began = self.requests[0][0]
        counts = Counter(
            int((at - began) // MINUTE) for at, id, _ in self.requests if id == subscription_id
        )
        return [counts[minute] for minute in range(max(counts) + 1)]

    def _read_on(self) -> bool:
        lane = self.lane
        rows = lane.rows(2000)
        if not lane.wants_more(lane.stock.closed(rows=rows, max_bytes=10**9), rows=rows):
            return False
        lane.notified.clear()
        generation, in_memory = lane.stock.begin_reading()
        run = lane.run_to_read()
        limits = run.limits(rows)
        found = self._found(run, limits, in_memory)
        run.began_at = run.began_at or self.clock.now
        skipped = sum(each.is_skipped for each in found)
        run.add(limits, fresh=len(found) - skipped, skipped=skipped, is_cut=bool(in_memory))
        if not found and not run.left:
            lane.stops.record_run(run)
        groups = [Group(1, None, [each], generation, run) for each in found]
        lane.stock.add(
            groups,
            more={WHOLE_LANE} if found or run.goes_on else set(),
            is_full=not run.is_early and len(found) >= limits.rows,
        )
        return True

    def _found(
        self, run: RunResult, limits: PieceLimits, in_memory: Collection[int]
    ) -> list[Parcel]:
        """Read as `read_runs.sql` does."""
        rows = [row for id, row in sorted(self.rows.items()) if id not in in_memory]
        fresh = [row.parcel for row in rows if not row.parcel.is_skipped][: limits.fresh_rows]
        skipped = [
            row
            for row in sorted(rows, key=lambda row: row.tried_at)
            if row.parcel.is_skipped
            and row.parcel.subscription_id not in limits.resting
            and row.tried_at <= (run.began_at or self.clock.now)
        ][: limits.skipped_rows]
        tried = sorted((row.parcel for row in skipped), key=lambda each: each.delivery_id)
        if limits.is_fresh_first:
            return [*fresh, *tried][: limits.rows]
        return sorted([*fresh, *tried], key=lambda each: each.delivery_id)[: limits.rows]

    def _send(self) -> bool:
        lane = self.lane
        chosen = lane.take()
        if chosen is None:
            return False
        (group, each) = chosen
        self.clock.now += 0.01
        self.requests.append((self.clock.now, each.subscription_id, each.is_skipped))
        is_refused = self.refuses(each)
        answer = outcome(OutcomeClass.SERVER_ERROR if is_refused else OutcomeClass.SUCCESS)
        verdict = lane.window.judge(answer, TEAMFORGE, each.tries)
        lane.stops.record_outcome(each, answer, verdict, TEAMFORGE)
        row = self.rows[each.delivery_id]
        row.parcel, row.tried_at = replace(each, is_skipped=True), self.clock.now
        result = group.run_result
        assert result is not None
        if verdict.step is NextStep.SKIP:
            result.count_failed(
                each.delivery_id,
                subscription_id=each.subscription_id,
                reason="500",
                rules=TEAMFORGE,
                was_skipped=each.is_skipped,
            )
        else:
            assert verdict.status is Status.DELIVERED
            del self.rows[each.delivery_id]
            result.count_settled(each.subscription_id, was_skipped=each.is_skipped)
        lane.leave(each)
        lane.stock.drop([each])
        if not result.left:
            if result.leaves_nothing:
                lane.stock.exhaust()
            lane.stops.record_run(result)
        return True
