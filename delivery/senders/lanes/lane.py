"""A lane in its sender's memory: how it begins, yields and ends, the next delivery, the run.

    serving ── quiesce ──▶ yielding ── nothing is in flight ──▶ ended
       ▲                     │  ▲
       └────── resume ───────┘  └── end_after_attempts, a fault: for good

`stops` has the reasons for which the lane is stopped, `stock` the deliveries read and the choice
among them, `in_flight` the deliveries being sent. The lane's task reads, and `jobs` send. No method
here awaits, so each transition is atomic.
"""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from delivery.senders.entries import MOST_OUTPUTS, Change, Entry, Run
from delivery.senders.http.request import Request
from delivery.senders.lanes.in_flight import InFlight, Jobs
from delivery.senders.lanes.stock import READ_SECONDS, CatchUpRate, Keys, Stock
from delivery.senders.lanes.stops import Stops
from delivery.senders.lanes.window import window_of
from delivery.senders.parcel import Group, Key, Parcel
from delivery.senders.run_result import RunResult
from delivery.senders.shards.claimed_shards import LaneLostError

# Lanes without order check this often for ended pauses and postponed deliveries.
LOOK_SECONDS = 0.5
# A lane that failed reads few deliveries until the endpoint answers: most would only be read again.
ROWS_AFTER_FAILURE = 16
# A run up to this length stays recorded when all of it is settled: emptying it costs a commit.
SHORT_RUN = 8


class SenderLane:
    """The state of serving one lane; state that must outlive the process is in the database.

    `notified` is set when there is new work. `nudged` is set when waiting deliveries should be
    checked again, because a person requested it or a subscription changed. `changed` is set
    whenever there may be something to do.
    """

    def __init__(self, row: Mapping[str, Any]) -> None:
        self.id: int = row["id"]
        # Never changes: a lane whose subscriber needs another window is given back and begun again.
        self.window = window_of(row["kind"], row)
        self.notified, self.nudged, self.changed = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self.task: asyncio.Task[None] | None = None
        self.fault: Exception | None = None
        self._is_ending = self._is_quiescing = False
        # Each job delivers one group after another.
        self.jobs = Jobs(self._end_job)
        self.in_flight = InFlight()
        self.keys = Keys(self.window)
        self.rate = CatchUpRate(row["catch_up_rate"])
        self.stock = Stock(self.window, self.keys, self.rate)
        self.stops = Stops(
            row, self.window, self.keys, is_tried=self.in_flight.is_tried, forget=self.stock.forget
        )
        # A request made ahead.
        self.request: Request | None = None
        # Whether the last read executed scripts.
        self._executed_scripts = False
        # The number of deliveries in the last run recorded ahead.
        self._recorded = 0
        if self.stops.is_suspended:
            # The new sender must read the reason before it can be notified of a changed reason.
            self.nudged.set()

    # Notifying, nudging and ending the lane.

    def serve_in(self, task: asyncio.Task[None]) -> None:
        self.task = task

    def notify(self) -> None:
        """Note that there is new work."""
        self.notified.set()
        self.changed.set()

    def nudge(self) -> None:
        """Check everything again and end a pause; deliveries read before are stale."""
        self.stock.outdate()
        self.nudged.set()
        self.notify()

    @property
    def is_yielding(self) -> bool:
        """True if no attempt may begin, and the lane ends after those in flight."""
        return self._is_ending or self._is_quiescing or self.fault is not None

    def end_after_attempts(self) -> None:
        """End the lane after the attempts in flight."""
        self._is_ending = True
        self.nudge()

    def quiesce(self) -> None:
        """End the lane after the attempts in flight, unless `resume` is called before."""
        self._is_quiescing = True
        self.nudge()

    def resume(self) -> None:
        """Continue if the lane was quiesced and has not ended yet."""
        if self._is_quiescing:
            self._is_quiescing = False
            self.nudge()

    def fail(self, fault: Exception) -> None:
        """End the lane because of a fault. If the lane is lost, no answer is of any use."""
        self.fault = self.fault or fault
        if isinstance(fault, LaneLostError):
            self.in_flight.cut_off()
        self.nudged.set()
        self.changed.set()

    # Sending.

    @property
    def is_sending(self) -> bool:
        return len(self.jobs) > 0

    @property
    def waits_for_jobs(self) -> bool:
        """True if the lane continues only when no job is running.

        A lane that recorded its run ahead acts on a nudge between two attempts.
        """
        is_nudged = self.window.records_ahead and self.nudged.is_set()
        return self.is_sending and (self.is_yielding or self.stops.is_suspended or is_nudged)

    def _end_job(self, fault: Exception | None) -> None:
        if fault is not None:
            self.fail(fault)
        self.changed.set()

    def take(self) -> tuple[Group, Parcel] | None:
        """Take a group that may be sent now, and the parcel of it to try."""
        if self.is_yielding or self.stops.is_suspended:
            return None
        chosen = self.stock.take()
        if chosen is not None and self.window.records_ahead:
            self.enter(chosen[1])
        return chosen

    def take_sibling(self, group: Group) -> Parcel | None:
        """Take the parcel to try next in a group that another endpoint did not accept."""
        return None if self.is_yielding else self.stock.take_sibling(group)

    def enter(self, parcel: Parcel) -> None:
        """Note that the parcel's attempt is recorded, or about to be."""
        self.in_flight.add(parcel, self.window.key_of(parcel))

    def leave(self, parcel: Parcel) -> None:
        """Note that the parcel's attempt is over, or was not made."""
        self.keys.leave(parcel)
        self.in_flight.remove(parcel)
        if not self.window.records_ahead or self.stock.is_low:
            self.changed.set()

    def set_rate(self, rate: float | None) -> None:
        """Begin at most so many deliveries per second; None: without a limit."""
        if self.rate.set(rate):
            self.changed.set()

    def prepare(
        self, make: Callable[[Parcel], Request | None], parcel: Parcel | None = None
    ) -> None:
        """Make the next request ahead if the window says so: of `parcel`, or of the next in memory.

        A lane with a catch-up rate would send the request only after a while, and a request
        contains the time: none is made then.
        """
        if self.window.prepares_requests and not self.rate.is_limited:
            parcel = parcel or self.stock.first()
            if parcel is not None:
                self.request = make(parcel)

    def run(self, ahead: Sequence[Parcel] = ()) -> Run:
        """Return the run to record: attempts in flight and, if recorded ahead, all that follow."""
        parcels = self.in_flight.parcels
        if self.window.records_ahead:
            parcels += [*self.stock.parcels(), *ahead]
            self._recorded = len(parcels)
        return Run(
            lane_id=self.id,
            ids=tuple(parcel.delivery_id for parcel in parcels),
            attempts=tuple(parcel.attempts for parcel in parcels),
            is_concurrent=not self.window.records_ahead,
        )

    # Reading, and waiting for a reason to read.

    @property
    def known_keys(self) -> Collection[Key]:
        """The endpoints that the lane is known to send to."""
        return self.keys.known

    def rows(self, of_a_lane: int) -> int:
        """Return how many deliveries to read at a time, if a lane may hold so many."""
        rows = self.window.rows(of_a_lane)
        if not self.window.records_ahead:
            return rows
        if self._executed_scripts:
            # No more than one batch of scripts: the rest would only be read again.
            rows = self.rate.rows_ahead(min(rows, MOST_OUTPUTS))
        if self.stops.whole.failures and not self.stops.runs.is_answered(self.stock.generation):
            return min(rows, ROWS_AFTER_FAILURE)
        return rows

    def run_to_read(self) -> RunResult:
        """Return the run that the next read adds to; for a lane that records its run ahead."""
        most = self.window.capacity or ROWS_AFTER_FAILURE
        return self.stops.runs.to_read(
            most=most, generation=self.stock.generation, is_blocked=self.stops.is_blocked
        )

    def wants_more(self, closed: Collection[Key], *, rows: int) -> bool:
        return self.stock.wants_more(
            closed, rows=rows, is_sending=self.is_sending, is_notified=self.notified.is_set()
        )

    def note_read(self, *, executed_scripts: bool) -> None:
        self._executed_scripts = executed_scripts

    def look_again(self) -> bool:
        """End all pauses, and read everything again. Return whether anything had been read."""
        self.nudged.clear()
        self.notified.set()
        self.keys.try_now()
        self.stops.runs.end_pauses()
        return self.stock.forget()

    @property
    def has_more_to_send(self) -> bool:
        """True if more deliveries are read, or known to be there: they wait for a commit."""
        return bool(self.stock) or self.stock.is_cut or self.notified.is_set()

    @property
    def is_busy(self) -> bool:
        """True if there is something to do, now or after a pause."""
        is_waiting = bool(self.keys.blocked()) or self.stops.runs.is_pausing
        return bool(self.stock) or self.is_sending or is_waiting

    def end_idle_stop(self) -> list[Entry]:
        """End the stop of an idle lane that records its run ahead, and empty a long run.

        A settled delivery in a run means nothing, but the next sender of the shard checks each.
        """
        is_idle = not (self.stock or self.stock.more or self.notified.is_set() or self.is_sending)
        if not self.window.records_ahead or not is_idle:
            return []
        changes: list[Change] = []
        if not self.stops.runs.is_pausing:
            changes = self.stops.end_whole()
        return [self.run(), *changes] if changes or self._recorded > SHORT_RUN else []

    def seconds_to_wait(self, linger: float) -> float | None:
        """Return how long to wait for a change.

        None, without limit, while a run recorded ahead is being sent: its job reports the end.
        """
        is_sending_run = self.window.records_ahead and self.is_sending
        if self.rate.is_limited and self.stock and not is_sending_run:
            return min(self.rate.seconds_left, LOOK_SECONDS)
        if not self.window.records_ahead:
            return READ_SECONDS if self.notified.is_set() else LOOK_SECONDS
        if is_sending_run:
            return None
        pause_left = self.stops.runs.seconds_until_next
        if pause_left == 0:
            return 0.0
        return self.stops.whole.seconds_left or pause_left or linger

    def record_time(self) -> None:
        """Note that nothing changed during the wait: postponed deliveries may be due."""
        if not self.window.records_ahead or self.stops.runs.end_pauses_that_are_over():
            self.notified.set()
