"""The lanes that a sender serves: its shards, their lanes with work, recovery, and giving back.

    foreign ── its lock is free ──▶ claimed ── another sender's share ──▶ leaving
       ▲                               ▲                                    │  │
       │                               └────── an attempt takes long ───────┘  │
       └───────────────────────── no lane is served ───────────────────────────┘

The lanes of a claimed shard are served from the moment they have work until they have been idle for
a while. Deliveries that a lane's last sender may have sent without recording an outcome are settled
before anything else of the lane is sent: its last sender died, or lost the shard.

A shard that belongs to another sender is in the leaving state only briefly: its lanes begin no
attempt, and must not wait for a long attempt. If an attempt does take long, the shard is kept
and left later. Nothing is delayed meanwhile, because its lanes are served here.
"""

import asyncio
import logging
import time
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from delivery.models import LaneKind
from delivery.models.shard import shard_of
from delivery.outcome import lost_outcome
from delivery.senders.context import SenderContext
from delivery.senders.entries import Run, Settlement
from delivery.senders.lanes.lane import SenderLane
from delivery.senders.lanes.window import window_of
from delivery.senders.serve import serve_lane
from delivery.senders.shards.claimed_shards import LaneLostError
from delivery.senders.shards.sharing import Sharing, shards_of
from delivery.verdict import judge_lost

log = logging.getLogger(__name__)

# While a shard is being left its lanes wait this long for each other's attempts.
LEAVE_SECONDS = 1.0
# A shard that could not be left is tried again after this time, which doubles with each try.
STAY_SECONDS = 10.0
MAX_STAY_SECONDS = 320.0


class Claims:
    """The shards of a sender and their lanes; each lane is served by a task of its own."""

    def __init__(self, context: SenderContext, tasks: asyncio.TaskGroup) -> None:
        self._context = context
        self._tasks = tasks
        self.sharing = Sharing()
        self._wanted: frozenset[int] = frozenset()
        # The slots that share the shards, and our own slot.
        self._shared: tuple[frozenset[int], int] | None = None
        self._leaving: dict[int, float] = {}
        self._stay_until: dict[int, tuple[float, float]] = {}
        self._beginning: set[int] = set()
        self._unfinished: set[int] = set()
        self._is_closed = False

    @property
    def is_leaving(self) -> bool:
        return bool(self._leaving)

    async def update_members(self, *, busy_percent: int = 0) -> None:
        """Find the senders at work, claim this sender's shards, and leave the others."""
        session = self._context.session
        sharing = self.sharing
        own, others = await session.members(busy_percent=busy_percent, sharing=sharing.sharing)
        sharing.update_members(own, others, now=time.monotonic())
        if (shared := (sharing.slots, own.slot)) != self._shared:
            self._shared = shared
            self._wanted = shards_of(own.slot, sharing.slots)
        self._end_lost_lanes()
        if self._is_closed:
            return
        await self._leave(set(session.claimed.shards) - self._wanted)
        if time.monotonic() >= session.claimed.may_claim_at:
            await self._claim(self._wanted.difference(session.claimed.shards))

    async def serve(self, lane_ids: Iterable[int]) -> None:
        """Begin to serve these lanes, as far as they are ours and have no task yet."""
        # Without duplicates: a lane begun twice would be served twice.
        wanted = [id for id in dict.fromkeys(lane_ids) if self._is_wanted(id)]
        if not wanted:
            return
        epochs = {id: self._context.session.claimed.epoch_of(id) for id in wanted}
        # Keeps concurrent calls from beginning the same lanes.
        self._beginning.update(wanted)
        try:
            rows = await self._context.read_connection.fetch("read_lanes", {"lane": wanted})
            settlements = await self._lost([row["id"] for row in rows if row["run_ids"]])
        finally:
            self._beginning.difference_update(wanted)
        for row in rows:
            # The row is valid only while the shard is ours in the epoch of the read.
            epoch = epochs[row["id"]]
            if self._is_wanted(row["id"]) and epoch == self._context.session.claimed.epoch_of(
                row["id"]
            ):
                assert epoch is not None
                self._begin(row, settlements[row["id"]], epoch=epoch)

    async def serve_unfinished(self) -> None:
        """Begin to serve the lanes whose run was left unfinished.

        They may have nothing more to send.
        """
        shards, self._unfinished = self._unfinished, set()
        if shards:
            rows = await self._context.read_connection.fetch(
                "unfinished_lanes", {"shard": list(shards)}
            )
            await self.serve(row["lane_id"] for row in rows)

    def give_back_changed_windows(self, changed: Iterable[Mapping[str, Any]]) -> None:
        """Give back the lanes whose window has changed; they are begun again.

        So a lane is never served in two ways at once: the old way ends before the new one begins.
        """
        for row in changed:
            lane = self._context.lanes.get(row["id"])
            if lane is not None and lane.window != window_of(LaneKind.TOPIC, row):
                lane.end_after_attempts()

    def close(self) -> None:
        """Give all lanes back and begin no more."""
        self._is_closed = True
        for lane in self._context.lanes.values():
            lane.end_after_attempts()

    async def _claim(self, shards: Collection[int]) -> None:
        if shards:
            self._unfinished |= await self._context.session.claim(list(shards))

    async def _leave(self, shards: Collection[int]) -> None:
        lanes = self._lanes_by_shard()
        self._leaving = {shard: since for shard, since in self._leaving.items() if shard in shards}
        for shard in shards:
            self._leave_one(shard, lanes[shard])
        for lane in self._context.lanes.values():
            # Includes lanes whose shard has become ours again.
            if shard_of(lane.id) not in self._leaving:
                lane.resume()
        await self.release_left()

    async def release_left(self) -> None:
        """Release the shards that are being left, as soon as none of their lanes is served."""
        served = (
            {shard_of(lane_id) for lane_id in self._context.lanes} if self._leaving else frozenset()
        )
        if left := [shard for shard in self._leaving if shard not in served]:
            # They count as being left until they are released: none of their lanes may begin
            # meanwhile.
            await self._context.session.release(left)
            for shard in left:
                del self._leaving[shard]
                self._stay_until.pop(shard, None)

    def _leave_one(self, shard: int, lanes: Sequence[SenderLane]) -> None:
        now = time.monotonic()
        rests_until, rest = self._stay_until.get(shard, (now, STAY_SECONDS))
        since = self._leaving.get(shard)
        if (
            since is None
            and now >= rests_until
            and not self._are_hanging(lanes, since=now - LEAVE_SECONDS)
        ):
            self._leaving[shard] = now
            for lane in lanes:
                lane.quiesce()
        elif since is not None and lanes and now >= since + LEAVE_SECONDS:
            del self._leaving[shard]
            self._stay_until[shard] = now + rest, min(2 * rest, MAX_STAY_SECONDS)

    def _are_hanging(self, lanes: Iterable[SenderLane], *, since: float) -> bool:
        """True if a lane has waited for an answer or a locked row since before `since`."""
        locked = self._context.group_commit.locked_lanes
        return any(lane.id in locked or lane.in_flight.is_hanging(since=since) for lane in lanes)

    def _end_lost_lanes(self) -> None:
        """End the lanes that another sender has now.

        Otherwise they would end only at their next commit.
        """
        for lane in self._context.lanes.values():
            if not self._context.session.claimed.is_serving(lane.id):
                lane.end_after_attempts()

    def _lanes_by_shard(self) -> Mapping[int, list[SenderLane]]:
        lanes: defaultdict[int, list[SenderLane]] = defaultdict(list)
        for lane in self._context.lanes.values():
            lanes[shard_of(lane.id)].append(lane)
        return lanes

    def _begin(
        self, row: Mapping[str, Any], settlements: Sequence[Settlement], *, epoch: int
    ) -> None:
        lane = SenderLane(row)
        self._context.lanes[lane.id] = lane
        self._context.session.claimed.begin(lane.id, epoch=epoch)
        unfinished: list[Settlement | Run] = [*settlements, _no_run(row)] if row["run_ids"] else []
        lane.serve_in(self._tasks.create_task(self._serve(lane, unfinished)))

    async def _serve(self, lane: SenderLane, unfinished: Sequence[Settlement | Run]) -> None:
        try:
            if unfinished:
                # Send nothing before the deliveries in doubt are settled.
                await self._context.group_commit.commit(lane.id, *unfinished)
            await serve_lane(lane, self._context)
        except LaneLostError:
            log.warning("lane lost", extra={"lane": lane.id})
        except Exception:
            # A fault of ours in one lane must not end the others; the lane is begun again.
            log.exception("lane failed", extra={"lane": lane.id})
        finally:
            self._context.session.claimed.end(lane.id)
            del self._context.lanes[lane.id]
            if lane.notified.is_set():
                # The notification came while the lane was being given back, when no task read it.
                self._tasks.create_task(self.serve([lane.id]))

    async def _lost(self, lane_ids: Sequence[int]) -> Mapping[int, list[Settlement]]:
        """Return the deliveries of these lanes in doubt, settled as their policies say."""
        settlements: defaultdict[int, list[Settlement]] = defaultdict(list)
        if not lane_ids:
            return settlements
        rows = await self._context.read_connection.fetch("lost", {"lane": lane_ids})
        await self._context.load(row["subscription_id"] for row in rows)
        now = datetime.now(UTC)
        for row in rows:
            settlements[row["lane_id"]].append(self._settled_as_lost(row, now=now))
            log.warning("in doubt", extra={"lane": row["lane_id"], "delivery": row["id"]})
        return settlements

    def _settled_as_lost(self, row: Mapping[str, Any], *, now: datetime) -> Settlement:
        rules = self._context.endpoints[row["subscription_id"]].rules
        return Settlement(
            lane_id=row["lane_id"],
            delivery_id=row["id"],
            number=row["attempts"] + 1,
            verdict=judge_lost(rules, is_only=row["is_volatile"]),
            outcome=lost_outcome(now),
            was_skipped=row["skipped"],
        )

    def _is_wanted(self, lane_id: int) -> bool:
        is_known = lane_id in self._context.lanes or lane_id in self._beginning
        shard = shard_of(lane_id)
        is_ours = shard in self._context.session.claimed.shards and shard not in self._leaving
        return is_ours and not is_known and not self._is_closed


def _no_run(lane: Mapping[str, Any]) -> Run:
    """Return an empty run that keeps whether the lane was served in order."""
    return Run(lane_id=lane["id"], ids=(), attempts=(), is_concurrent=lane["run_is_concurrent"])
