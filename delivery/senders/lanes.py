"""Which lanes a sender serves: membership, claims, recovery, and giving back.

Senders agree without talking: each lane belongs to one of the senders at work by a
hash of both (highest random weight), so that a sender that comes or goes moves only its
own share. A sender claims what belongs to it, and lets go of what does not any more; the advisory
lock alone decides who serves, so that a disagreement costs a moment, never order.
"""

import asyncio
import logging
import time
from collections.abc import Collection, Coroutine, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from delivery.models import LaneKind
from delivery.outcome import lost
from delivery.senders import queue, topic
from delivery.senders.desk import Desk
from delivery.senders.entries import Entry, Run, Settlement
from delivery.senders.lane import Lane, pace_of
from delivery.senders.queue_lane import QueueLane
from delivery.senders.topic_lane import TopicLane
from delivery.verdict import judge_lost

log = logging.getLogger(__name__)

# Locks are a shared resource of the server. Lanes beyond these wait until their sender has room: no other takes them.
MAX_LANES = 20_000


def owner_of(lane_id: int, members: Collection[int]) -> int:
    """Return the member that a lane belongs to."""
    return max(members, key=lambda member: (_weight(lane_id, member), member))


def _weight(lane_id: int, member: int) -> int:
    # The finalizer of MurmurHash3 (32 bits): near ids must not get near weights.
    mixed = (lane_id * 0x9E3779B1 ^ member * 0x85EBCA6B) & 0xFFFFFFFF
    mixed = ((mixed ^ mixed >> 16) * 0x85EBCA6B) & 0xFFFFFFFF
    mixed = ((mixed ^ mixed >> 13) * 0xC2B2AE35) & 0xFFFFFFFF
    return mixed ^ mixed >> 16


class Claims:
    """The lanes of one sender, each served by a task of its own."""

    def __init__(self, desk: Desk, tasks: asyncio.TaskGroup) -> None:
        self._desk = desk
        self._tasks = tasks
        self.members: frozenset[int] = frozenset()
        self._surveyed: frozenset[int] = frozenset()
        # Lanes that this stint does not take any more; see `delivery.senders.stint`.
        self.parked: set[int] = set()
        self._claiming: set[int] = set()
        self._is_closed = False

    async def meet(self) -> None:
        """Look who else is at work, and let go of lanes that belong to another now."""
        rows = await self._desk.settler.members()
        self.members = frozenset(row["pid"] for row in rows) | {self._desk.settler.backend_id}
        for lane in self._desk.lanes.values():
            if not self._is_mine(lane.id):
                lane.give_back()

    def must_survey(self) -> bool:
        """Whether to look for lanes that somebody left, which is to be done whenever the senders have changed."""
        if self.members == self._surveyed or not self._may_take():
            return False
        self._surveyed = self.members
        return True

    async def claim(self, lane_ids: Iterable[int]) -> None:
        """Take those lanes that belong to us and that nobody serves, and start serving them."""
        room = MAX_LANES - len(self._desk.lanes)
        # Each once: locked twice, it would be served twice.
        wanted = [id for id in dict.fromkeys(lane_ids) if self._is_wanted(id)][: max(room, 0)]
        if not wanted:
            return
        # Whoever else claims meanwhile must not: the session that holds a lock gets it once more.
        self._claiming.update(wanted)
        try:
            rows = await self._desk.settler.lock(wanted)
            unrecovered = await self._recover([row for row in rows if row["run_ids"]])
            for row in rows:
                await self._begin(row, is_recovered=row["id"] not in unrecovered)
        finally:
            self._claiming.difference_update(wanted)

    async def _begin(self, row: Mapping[str, Any], *, is_recovered: bool) -> None:
        if self._is_closed or not is_recovered:
            await self._desk.settler.unlock(row["id"])
            return
        lane: Lane
        if row["kind"] == LaneKind.TOPIC and not pace_of(row).is_concurrent:
            lane = TopicLane(row)
            serving = topic.serve(lane, self._desk)
        else:
            lane = QueueLane(row)
            serving = queue.serve(lane, self._desk)
        self._desk.lanes[lane.id] = lane
        lane.task = self._tasks.create_task(self._serve(lane, serving))

    def notice_paces(self, changed: Iterable[Mapping[str, Any]]) -> None:
        """Give back lanes that are served otherwise than their subscriber wants now; they are begun anew.

        So those who serve in order and those who do not never meet: the one lets the lock go before the other
        takes it.
        """
        for row in changed:
            lane = self._desk.lanes.get(row["id"])
            if lane is not None and lane.pace != pace_of(row):
                lane.give_back()

    def park(self, lanes: Iterable[Lane]) -> None:
        """Give these lanes back for the rest of the stint."""
        for lane in lanes:
            self.parked.add(lane.id)
            lane.park()

    def close(self) -> None:
        """Give all lanes back and take no more."""
        self._is_closed = True
        for lane in self._desk.lanes.values():
            lane.give_back()

    def reopen(self) -> None:
        """Take lanes again, but for the parked."""
        self._is_closed = False

    async def _serve(self, lane: Lane, serving: Coroutine[Any, Any, None]) -> None:
        try:
            await serving
        except Exception:
            # A fault of ours in one lane must not end the others; the lane is claimed again.
            log.exception("lane failed", extra={"lane": lane.id})
        finally:
            await self._desk.settler.unlock(lane.id)
            del self._desk.lanes[lane.id]
            if not lane.is_failing:
                # It was slow, but it answered: it need not wait for those that hang.
                self.parked.discard(lane.id)
            if lane.news.is_set():
                # It came while the lane was given back, when nobody listened for it.
                self._tasks.create_task(self.claim([lane.id]))

    async def _recover(self, lanes: Sequence[Mapping[str, Any]]) -> set[int]:
        """Settle what dead senders of these lanes may have sent, as the policy wants it.

        Returns the lanes where that failed: nothing may be sent there before it is done.
        """
        if not lanes:
            return set()
        rows = await self._desk.settler.lost_deliveries([lane["id"] for lane in lanes])
        await self._desk.know(row["subscription_id"] for row in rows)
        entries: dict[int, list[Entry]] = {lane["id"]: [_no_run(lane)] for lane in lanes}
        now = datetime.now(UTC)
        for row in rows:
            entries[row["lane_id"]].insert(0, self._lost(row, now=now))
            log.warning("in doubt", extra={"lane": row["lane_id"], "delivery": row["id"]})
        commits = (self._desk.settler.commit(id, *group) for id, group in entries.items())
        results = await asyncio.gather(*commits, return_exceptions=True)
        return {id for id, result in zip(entries, results, strict=True) if result is not None}

    def _lost(self, row: Mapping[str, Any], *, now: datetime) -> Settlement:
        return Settlement(
            lane_id=row["lane_id"],
            delivery_id=row["id"],
            number=row["attempts"] + 1,
            verdict=judge_lost(
                self._desk.endpoints[row["subscription_id"]].rules, is_only=row["is_volatile"]
            ),
            outcome=lost(now),
            was_skipped=row["skipped"],
        )

    def _is_wanted(self, lane_id: int) -> bool:
        is_known = lane_id in self._desk.lanes or lane_id in self._claiming or lane_id in self.parked
        return self._may_take() and not is_known and self._is_mine(lane_id)

    def _may_take(self) -> bool:
        return not self._is_closed and time.monotonic() >= self._desk.settler.may_lock_at

    def _is_mine(self, lane_id: int) -> bool:
        return owner_of(lane_id, self.members) == self._desk.settler.backend_id


def _no_run(lane: Mapping[str, Any]) -> Run:
    """Nothing is under way; whether the lane was served in order stays known."""
    return Run(lane_id=lane["id"], ids=(), attempts=(), is_concurrent=lane["run_is_concurrent"])
