"""The loop that a cluster runs: one bounded stint of sending.

django-q2 kills what runs longer than its time-out, so a sender works in stints. At the
end of one its worker takes the next from the queue at once. So that a hanging endpoint
does not hold up the others at that seam, a stint ends in two steps: first lanes that wait
for a slow endpoint, pause or idle are parked one by one while the rest go on, then the rest finish
what they are sending, which takes them a moment.

A cluster has as many slots as workers, each an advisory lock. A stint that finds no
free slot waits for one: the session of a killed sender may hold it for some seconds more, and
another machine that is taken for this one as long as it lives.
"""

import asyncio
import gc
import logging
import os
import resource
import time
import zlib
from collections.abc import Callable, Collection, Sequence

import uvloop
from django.conf import settings

from delivery.database import AWAY
from delivery.models.lane import MEMBER_LOCKS
from delivery.senders.changes import Changes
from delivery.senders.desk import Desk
from delivery.senders.http import Client
from delivery.senders.lane import SLOW_SECONDS, Lane
from delivery.senders.lanes import Claims
from delivery.senders.listen import Listener
from delivery.senders.lock_room import warn_of_little_room
from delivery.senders.read import Reader
from delivery.senders.settle import Settler
from delivery.stopping import stopping
from subscriptions.limits import MAX_TIMEOUT_SECONDS

log = logging.getLogger(__name__)

POLL_SECONDS = 0.5
# When Inturn stops, an attempt under way has this long to get its answer.
STOP_SECONDS = 5.0
# And all that can still be recorded is, this long after.
GIVE_UP_SECONDS = 10.0


class Stint:
    """One sender at work, from `run` on until its deadline or until `must_stop` says so."""

    def __init__(self, *, queue: str, slots: int, seconds: float, must_stop: Callable[[], bool]) -> None:
        self._queue = queue
        self._slots = slots
        self._deadline = time.monotonic() + seconds
        self._must_stop = must_stop
        self._settler = Settler(name=f"inturn sender {os.getpid()}")
        self._reader = Reader(name=f"inturn reader {os.getpid()}")
        self._changes = Changes(self._reader)

    async def run(self) -> bool:
        """Send until the stint ends. A successor is always needed, also of one that never got a slot."""
        raise_file_limit()
        collect_garbage_rarely()
        overdue = asyncio.create_task(self._give_up_when_overdue())
        try:
            if await self._take_slot():
                await warn_of_little_room(self._reader)
            async with Client(allowed_networks=settings.ENVIRONMENT.allowed_networks) as client:
                await self._work(Desk(settler=self._settler, reader=self._reader, client=client))
        finally:
            overdue.cancel()
            await self._reader.close()
            await self._settler.close()
        return True

    async def _give_up_when_overdue(self) -> None:
        """Without a database nothing ends in order: what is under way is left as a crash would leave it."""
        while not self._must_stop():
            await asyncio.sleep(POLL_SECONDS)
        await asyncio.sleep(GIVE_UP_SECONDS)
        log.error("stopped before all was recorded: the database does not answer")
        os._exit(1)

    async def _take_slot(self) -> bool:
        keys = [slot_key(self._queue, slot) for slot in range(self._slots)]
        while not self._must_stop() and time.monotonic() < self._deadline:
            try:
                if await self._settler.take_slot(keys):
                    return True
            except AWAY as error:
                log.warning("cannot connect", extra={"error": str(error)})
            await asyncio.sleep(POLL_SECONDS)
        return False

    async def _work(self, desk: Desk) -> None:
        listener = Listener(name=f"inturn listener {os.getpid()}")
        works = (self._settler.run(), self._reader.run(), listener.run())
        try:
            # A servant that fails ends the stint, and the next begins afresh: nobody would be served.
            async with asyncio.TaskGroup() as group:
                servants = [group.create_task(work) for work in works]
                await self._serve(desk, listener)
                for servant in servants:
                    servant.cancel()
        finally:
            await listener.close()

    async def _serve(self, desk: Desk, listener: Listener) -> None:
        async with asyncio.TaskGroup() as lanes:
            claims = Claims(desk, lanes)
            await self._poll_until_over(desk, claims, listener)
            await self._end(desk, claims, listener)
            await desk.successes.write(desk.reader)

    async def _poll_until_over(self, desk: Desk, claims: Claims, listener: Listener) -> None:
        while not self._is_over() and time.monotonic() < self._deadline:
            await self._poll(desk, claims)
            await self._attend(desk, claims, listener)

    async def _poll(self, desk: Desk, claims: Claims) -> None:
        """Look at everything that a notification may have failed to tell."""
        await claims.meet()
        await desk.successes.write(desk.reader)
        await self._notice_changes(desk, claims)
        stopped = [lane.id for lane in desk.lanes.values() if lane.is_pausing]
        for row in await desk.reader.fetch("due_lanes", {"lane": stopped}) if stopped else []:
            _wake(desk, row["id"])
        rows = await desk.reader.fetch("lanes_with_work")
        if claims.must_survey():
            rows += await desk.reader.fetch("lanes_under_way")
        await self._bring_news(desk, claims, [row["lane_id"] for row in rows])

    async def _attend(self, desk: Desk, claims: Claims, listener: Listener) -> None:
        """Act on notifications until the next poll is due."""
        due = time.monotonic() + POLL_SECONDS
        while (seconds := due - time.monotonic()) > 0 and not self._is_over():
            call = await listener.next(seconds=min(seconds, 0.1))
            if call is None:
                continue
            # First, for it takes no time: what was cancelled is not sent from here on.
            for lane_id in list(desk.lanes) if call.is_gap else call.nudged:
                _wake(desk, lane_id)
            if call.is_change or call.is_gap:
                await self._notice_changes(desk, claims)
            await self._bring_news(desk, claims, call.lanes)

    async def _bring_news(self, desk: Desk, claims: Claims, lane_ids: Collection[int]) -> None:
        for lane_id in lane_ids:
            lane = desk.lanes.get(lane_id)
            if lane is not None:
                lane.bring_news()
        await claims.claim(lane_ids)

    async def _notice_changes(self, desk: Desk, claims: Claims) -> None:
        changed = await self._changes.look()
        claims.notice_paces(changed.lanes)
        if stale := desk.stale(changed):
            for lane in desk.lanes_of(await desk.refresh(stale)):
                lane.wake()

    async def _end(self, desk: Desk, claims: Claims, listener: Listener) -> None:
        """Let all lanes finish what they are sending; those of slow endpoints first.

        A slow attempt that shows only when all lanes are given back delays the other TOPIC lanes by
        SLOW_SECONDS at most. A lane of independent messages (a queue's, retries, callbacks, CONCURRENT) keeps
        its lock until each of its attempts has ended, and begins none meanwhile.
        """
        latest = time.monotonic() + MAX_TIMEOUT_SECONDS
        while not self._is_over() and time.monotonic() < latest:
            if slow := _slow(desk):
                claims.park(slow)
                await self._poll(desk, claims)
                await self._attend(desk, claims, listener)
                continue
            claims.close()
            if await self._is_given_back(desk):
                return
            claims.reopen()
        claims.close()
        await self._cut_off(desk)

    async def _is_given_back(self, desk: Desk) -> bool:
        """Wait for all lanes; False as soon as one is slow, or Inturn stops."""
        while desk.lanes and not self._is_over() and not _slow(desk):
            await asyncio.sleep(0.02)
        return not desk.lanes

    async def _cut_off(self, desk: Desk) -> None:
        """Do not wait for ever for answers when Inturn stops, or a stint is overdue: record that none came."""
        latest = time.monotonic() + STOP_SECONDS
        while desk.lanes and time.monotonic() < latest:
            await asyncio.sleep(0.05)
        desk.client.is_closing = True
        for lane in desk.lanes.values():
            lane.cut_off()

    def _is_over(self) -> bool:
        return self._must_stop() or self._settler.has_lost_slot


def _slow(desk: Desk) -> Sequence[Lane]:
    return desk.hanging(since=time.monotonic() - SLOW_SECONDS)


def _wake(desk: Desk, lane_id: int) -> None:
    lane = desk.lanes.get(lane_id)
    if lane is not None:
        lane.wake()


def slot_key(queue: str, slot: int) -> int:
    """Return the key of the advisory lock that is one worker's slot."""
    return MEMBER_LOCKS << 32 | zlib.crc32(f"{queue}:{slot}".encode())


def raise_file_limit() -> None:
    """Every lane may hold a connection of its own."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def collect_garbage_rarely() -> None:
    """Take what is loaded out of the collector's sight, and let it look less often.

    Sending leaves next to no cycles, yet by its defaults the collector took a fifth of a sender's time.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 50, 50)


def run() -> bool:
    """Work one stint as the settings say."""
    stint = Stint(
        queue=settings.Q_CLUSTER["cluster_name"],
        slots=settings.ENVIRONMENT.sender_processes,
        seconds=settings.ENVIRONMENT.sender_stint_seconds,
        must_stop=stopping.is_set,
    )
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(stint.run())
