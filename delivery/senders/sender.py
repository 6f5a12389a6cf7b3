"""A sender: a process that serves lanes until Inturn stops.

It is an endless task of the django-q2 cluster: a worker runs it until the worker ends. It polls
every second for changes of which a notification may have been lost, less often while thousands of
lanes have work. It looks for other senders twice a second, and acts on notifications in between.
"""

import asyncio
import gc
import logging
import os
import time
from collections.abc import Callable, Collection

import uvloop
from django.conf import settings

from delivery.cluster.file_limit import raise_file_limit
from delivery.cluster.stop_event import stopping
from delivery.database.connections import AWAY
from delivery.lifecycle.traces import flush_traces
from delivery.senders.changes import Changes
from delivery.senders.claims import Claims
from delivery.senders.commits.group_commit import GroupCommit
from delivery.senders.context import SenderContext
from delivery.senders.http.client import HttpClient
from delivery.senders.notifications import Notification, NotificationListener
from delivery.senders.read_connection import MAX_REQUESTS, ReadConnection
from delivery.senders.shards.session import SenderSession
from subscriptions.values.built_in_receivers import built_in_receivers

log = logging.getLogger(__name__)

# The interval of looking for other senders: the lanes of a dead sender wait for the look, and for
# nothing else, because claimed shards are looked into at once.
MEMBERS_SECONDS = 0.5
# The interval of the poll for lost notifications.
POLL_SECONDS = 1.0
# Looking for lanes with work takes 15 µs for each. With thousands of lanes it takes at most this
# part of the time, because the lanes' own reads wait, but is put off for MOST_WORK_SECONDS at most.
WORK_SHARE = 0.1
MOST_WORK_SECONDS = 5.0
# The interval of checking whether a shard can be released that is being left.
LOOK_SECONDS = 0.25
# When Inturn stops, an attempt in flight may wait this long for the answer.
STOP_SECONDS = 5.0
# This long after the stop request everything that can be recorded has been recorded.
KILL_SECONDS = 10.0
# The interval of checking whether that time has begun.
KILL_CHECK_SECONDS = 1.0


class Sender:
    """A sender, from `run` or `serve` until `must_stop` returns True.

    The senders of a machine are numbered from 0: see `delivery.senders.shards.sharing.slots_for`.
    `context` is None until the sender is connected; `poll_due_at` is of the monotonic clock.
    """

    def __init__(self, *, must_stop: Callable[[], bool], number: int = 0) -> None:
        self._must_stop = must_stop
        self.session = SenderSession(number=number)
        self.read_connection = ReadConnection(name=f"inturn reader {os.getpid()}")
        self.context: SenderContext | None = None
        self._changes = Changes(self.read_connection)
        self._busy = Busy()
        self.poll_due_at = float("-inf")
        # When to look for lanes with work again; the shards of the last look, with their epochs.
        self._work_due_at = float("-inf")
        self._looked_into: frozenset[tuple[int, int]] = frozenset()

    async def run(self) -> None:
        """Serve in a process of its own, which ends if the sender cannot stop in order."""
        raise_file_limit()
        collect_garbage_rarely()
        overdue = asyncio.create_task(self._kill_after_stop_timeout())
        try:
            await self.serve()
        finally:
            overdue.cancel()
            flush_traces()

    async def serve(self) -> None:
        """Serve lanes, and change no setting of the process."""
        try:
            await self._connect()
            async with _http_client() as client:
                self.context = SenderContext(
                    group_commit=GroupCommit(self.session),
                    read_connection=self.read_connection,
                    client=client,
                )
                await self._work(self.context)
        finally:
            await self.read_connection.close()
            await self.session.close()

    async def _kill_after_stop_timeout(self) -> None:
        """End the process when it cannot stop in order, for example without a database.

        The attempts in flight are left as a crash would leave them.
        """
        while not self._must_stop():
            await asyncio.sleep(KILL_CHECK_SECONDS)
        await asyncio.sleep(KILL_SECONDS)
        log.error("stopped before all was recorded: the database does not answer")
        os._exit(1)

    async def _connect(self) -> None:
        """Connect, however long the database is away or all slots are taken."""
        while not self._must_stop():
            try:
                if await self.session.connect():
                    return
            except AWAY as error:
                log.warning("cannot connect", extra={"error": str(error)})
            await asyncio.sleep(MEMBERS_SECONDS)

    async def _work(self, context: SenderContext) -> None:
        listener = NotificationListener(name=f"inturn listener {os.getpid()}")
        works = (
            self.session.send_heartbeats(),
            context.group_commit.run(),
            self.read_connection.run(),
            listener.run(),
        )
        try:
            # If one of these tasks fails, end the sender, and another begins: without them no lane
            # is served.
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(work) for work in works]
                await self._serve(context, listener)
                for task in tasks:
                    task.cancel()
        finally:
            await listener.close()

    async def _serve(self, context: SenderContext, listener: NotificationListener) -> None:
        async with asyncio.TaskGroup() as lanes:
            claims = Claims(context, lanes)
            while not self._must_stop():
                await self._update_members(context, claims)
                await self._handle_notifications(context, claims, listener)
            claims.close()
            await self._cut_off(context)
            await context.successes.write(context.read_connection)

    async def _poll(self, context: SenderContext, claims: Claims) -> None:
        """Check for everything of which a notification may have been lost."""
        self.poll_due_at = time.monotonic() + POLL_SECONDS
        await context.successes.write(context.read_connection)
        await self._apply_changes(context, claims)
        pauses = [
            (lane.id, *pause)
            for lane in context.lanes.values()
            if (pause := lane.stops.pause) is not None
        ]
        if pauses:
            lanes, deliveries, failures = map(list, zip(*pauses, strict=True))
            parameters = {"lane": lanes, "delivery": deliveries, "failures": failures}
            for row in await context.read_connection.fetch("due_lanes", parameters):
                _nudge(context, row["id"])
        if self._may_look or self._has_claimed:
            await self._look_for_work(context, claims)

    @property
    def _may_look(self) -> bool:
        """True if looking for lanes with work takes no more than WORK_SHARE of the time now."""
        return time.monotonic() >= self._work_due_at

    @property
    def _has_claimed(self) -> bool:
        """True if shards were claimed since the last look for lanes with work."""
        return not self.session.claimed.claims <= self._looked_into

    async def _look_for_work(self, context: SenderContext, claims: Claims) -> None:
        began = time.monotonic()
        self._looked_into = self.session.claimed.claims
        if shards := list(self.session.claimed.shards):
            rows = await context.read_connection.fetch("lanes_with_work", {"shard": shards})
            taken = time.monotonic() - began
            self._work_due_at = began + min(taken / WORK_SHARE, MOST_WORK_SECONDS)
            await self._notify_lanes(context, claims, [row["lane_id"] for row in rows])

    async def _update_members(self, context: SenderContext, claims: Claims) -> None:
        """Look for other senders; poll if a poll is due, or for work in shards that they left."""
        await claims.update_members(busy_percent=self._busy.percent())
        if self._has_claimed:
            # Before anything is read for the lanes of these shards.
            await self._apply_changes(context, claims)
        await claims.serve_unfinished()
        if time.monotonic() >= self.poll_due_at or (self._has_claimed and self._may_look):
            await self._poll(context, claims)

    async def _handle_notifications(
        self, context: SenderContext, claims: Claims, listener: NotificationListener
    ) -> None:
        """Act on notifications until it is time to look for other senders again."""
        due = time.monotonic() + MEMBERS_SECONDS
        while (seconds := due - time.monotonic()) > 0 and not self._must_stop():
            look = LOOK_SECONDS if claims.is_leaving else MEMBERS_SECONDS
            notification = await listener.next(seconds=min(seconds, look))
            await claims.release_left()
            if notification is not None:
                await self._handle_notification(notification, context, claims)

    async def _handle_notification(
        self, notification: Notification, context: SenderContext, claims: Claims
    ) -> None:
        # First, because it takes no time: from here on nothing that was cancelled is sent.
        for lane_id in list(context.lanes) if notification.is_gap else notification.nudged:
            _nudge(context, lane_id)
        if notification.has_released_shards:
            await self._update_members(context, claims)
        if notification.is_gap:
            self._work_due_at = float("-inf")
        if notification.is_change or notification.is_gap:
            await self._apply_changes(context, claims)
        await self._notify_lanes(context, claims, notification.lanes)

    async def _notify_lanes(
        self, context: SenderContext, claims: Claims, lane_ids: Collection[int]
    ) -> None:
        for number, lane_id in enumerate(lane_ids, start=1):
            lane = context.lanes.get(lane_id)
            if lane is not None:
                lane.notify()
            if number % MAX_REQUESTS == 0:
                # Let these lanes request their reads, and the reading begin, before the others.
                await asyncio.sleep(0)
                await asyncio.sleep(0)
        await claims.serve(lane_ids)

    async def _apply_changes(self, context: SenderContext, claims: Claims) -> None:
        if not (self.session.claimed.claims or context.lanes):
            # A sender at rest needs no connection for reading. Its first look for shards that it
            # claims finds all changes since its last look.
            await self.read_connection.close()
            return
        changed = await self._changes.read()
        claims.give_back_changed_windows(changed.lanes)
        context.set_rates(changed.rates)
        if changed.is_held != context.is_held:
            context.is_held = changed.is_held
            for lane in context.lanes.values():
                lane.nudge()
        if stale := context.stale(changed):
            for lane in context.lanes_of(await context.refresh(stale)):
                lane.nudge()

    async def _cut_off(self, context: SenderContext) -> None:
        """Wait only a limited time for answers when Inturn stops; then record that none came."""
        latest = time.monotonic() + STOP_SECONDS
        while context.lanes and time.monotonic() < latest:
            await asyncio.sleep(0.02)
        context.client.is_closing = True
        for lane in context.lanes.values():
            lane.in_flight.cut_off()


class Busy:
    """The load of this process, measured about twice a second."""

    def __init__(self) -> None:
        self._percent = 0
        self._at, self._computed = time.monotonic(), time.process_time()

    def percent(self) -> int:
        """Return the percentage of computing time, measured over MEMBERS_SECONDS or more."""
        at, computed = time.monotonic(), time.process_time()
        if at - self._at >= MEMBERS_SECONDS:
            self._percent = min(round(100 * (computed - self._computed) / (at - self._at)), 100)
            self._at, self._computed = at, computed
        return self._percent


def _nudge(context: SenderContext, lane_id: int) -> None:
    lane = context.lanes.get(lane_id)
    if lane is not None:
        lane.nudge()


def collect_garbage_rarely() -> None:
    """Exempt loaded objects from garbage collection, and collect less often.

    Sending creates almost no cycles, yet with its defaults the collector took a fifth of a sender's
    time.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 50, 50)


def run_sender(number: int) -> None:
    """Send until Inturn stops, as the sender with this number of this machine."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(Sender(must_stop=stopping.is_set, number=number).run())


def _http_client() -> HttpClient:
    environment = settings.ENVIRONMENT
    return HttpClient(
        allowed_networks=environment.allowed_networks,
        built_in_receivers=built_in_receivers(environment.base_url),
    )
