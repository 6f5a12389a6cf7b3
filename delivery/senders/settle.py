"""EntryGroup commit: the one connection on which a sender holds its locks and commits.

All lanes of a process hand their entries to one committer. While a commit is under way,
what arrives waits and is committed together next: a lane waits for about one commit, and many
lanes share it. A lane that is alone commits by itself, which spares it two turns of the event loop.

Because outcomes are committed on the very connection that holds the advisory
locks, a sender that lost its lock cannot commit. When the connection is lost the
sender connects again and takes its locks back. A lane that nobody touched
meanwhile (its run in the database is the one we recorded) goes on as if nothing had happened,
and its outcome, which may or may not have been committed, is committed now: the statements
change nothing the second time, but for the counts of URLs' health, where one more does not matter. A lane that somebody else took is lost to us: LaneLostError.

Whoever locks a row that a group wants to change (a bulk job, a migration, a person at psql) must hold up no other
lane. So a statement waits for a lock for a moment only. When it does not get it the transaction is rolled back, and
its groups go to `HeldUp`, from where they are committed one by one: those that the lock does not concern at once, the others again and again,
while the committer's turn is free in between. A lane still waits until what it handed in is on disk, and what it
hands in meanwhile is committed after that.
"""

import asyncio
import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import psycopg
from psycopg.errors import LockNotAvailable, ReadOnlySqlTransaction

from delivery.database import AWAY, may_write
from delivery.models.lane import LANE_LOCKS
from delivery.senders.entries import Entry
from delivery.senders.groups import EntryGroup, HeldUp, Recorded, fail
from delivery.senders.session import Session
from delivery.senders.writing import queries

log = logging.getLogger(__name__)

RECONNECT_SECONDS = 0.2
# Who lost the database when we did has this long to come back and take its lanes: what was under way
# there is known to it, and would be in doubt to us.
GRACE_SECONDS = 2.0
# What met a lock is tried again this often.
HELD_UP_SECONDS = 0.5


class LaneLostError(Exception):
    """Another sender has taken the lane: stop serving it, and record nothing."""


class Settler:
    """The committer of one sender. `run` must be running while anything else is awaited."""

    def __init__(self, *, name: str) -> None:
        self._session = Session(name=name)
        self._waiting: list[EntryGroup] = []
        self._arrived = asyncio.Event()
        self._turn = asyncio.Lock()
        self._were_many = False
        self._held_up = HeldUp()
        self._runs: dict[int, Recorded] = {}
        self.has_lost_slot = False
        self.may_lock_at = float("-inf")

    async def commit(self, lane_id: int, *entries: Entry) -> None:
        """Return when the entries are on disk; raises LaneLostError if the lane is no longer ours."""
        group = self._group(lane_id, entries)
        self._waiting.append(group)
        self._arrived.set()
        await group.committed

    async def commit_uncancelled(self, lane_id: int, *entries: Entry) -> None:
        """Like `commit`, for a caller that nobody cancels: the commit itself would be broken off.

        It is the shorter way for one that commits alone; many are better off together.
        """
        if self._waiting or self._were_many or self._turn.locked():
            await self.commit(lane_id, *entries)
            return
        group = self._group(lane_id, entries)
        async with self._turn:
            await self._commit_groups(self._held_up.join(self._only_ours([group])))
        await group.committed

    async def run(self) -> None:
        """Commit what arrives, until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._commit_what_arrives())
            tasks.create_task(self._commit_held_up())

    @property
    def held_up(self) -> Sequence[int]:
        """The lanes that wait for a row which somebody else has locked."""
        return self._held_up.lane_ids

    async def _commit_what_arrives(self) -> None:
        while True:
            await self._arrived.wait()
            async with self._turn:
                self._arrived.clear()
                groups, self._waiting = self._waiting, []
                self._were_many = len(groups) > 1
                # Only who reads on is cancelled: what it would have recorded is no run of the lane's now.
                wanted = [group for group in groups if not group.committed.cancelled()]
                await self._commit_groups(self._held_up.join(self._only_ours(wanted)))

    async def _commit_held_up(self) -> None:
        while True:
            await self._held_up.is_any.wait()
            for lane_id in self._held_up.lane_ids:
                while await self._commit_first_held_up(lane_id):
                    continue
            if self._held_up.lane_ids:
                await asyncio.sleep(HELD_UP_SECONDS)

    async def _commit_first_held_up(self, lane_id: int) -> bool:
        """Try the lane's first group; False if there is none, or it is held up still."""
        async with self._turn:
            group = self._held_up.take(lane_id)
            if group is None:
                return False
            await self._commit_groups(self._only_ours([group]), was_held_up=True)
            return group.committed.done()

    async def lock(self, lane_ids: Sequence[int]) -> list[dict[str, Any]]:
        """Take those lanes that nobody serves, and return their rows; see `lock_lanes.sql`."""
        async with self._turn:
            rows = await self._fetch("lock_lanes", {"lane": lane_ids, "lock_class": LANE_LOCKS}) or []
        for row in rows:
            self._runs[row["id"]] = _recorded(row)
        return rows

    async def lost_deliveries(self, lane_ids: Sequence[int]) -> list[dict[str, Any]]:
        """Return what a dead sender of these lanes may have sent; see `lost.sql`."""
        async with self._turn:
            while (rows := await self._fetch("lost", {"lane": lane_ids})) is None:
                continue
            return rows

    async def members(self) -> list[dict[str, Any]]:
        """Return the senders at work; see `members.sql`.

        Asked on this very connection, without which we are none of them: an idle sender finds out in time that it is lost.
        """
        async with self._turn:
            while (rows := await self._fetch("members", {})) is None:
                continue
            return rows

    async def unlock(self, lane_id: int) -> None:
        """Give a lane back."""
        if self._runs.pop(lane_id, None) is None:
            return
        async with self._turn:
            await self._fetch("unlock_lanes", {"lane": [lane_id], "lock_class": LANE_LOCKS})

    async def take_slot(self, keys: Sequence[int]) -> bool:
        """Connect and take one of these locks; False if all are taken."""
        return await self._session.take_slot(keys)

    async def close(self) -> None:
        """Give everything back: the locks end with the connection."""
        await self._session.close()

    @property
    def backend_id(self) -> int:
        return self._session.backend_id

    @property
    def server_started_at(self) -> datetime | None:
        return self._session.server_started_at

    def _group(self, lane_id: int, entries: tuple[Entry, ...]) -> EntryGroup:
        if lane_id not in self._runs:
            raise LaneLostError
        return EntryGroup(lane_id, entries, asyncio.get_running_loop().create_future())

    async def _commit_groups(self, groups: list[EntryGroup], *, was_held_up: bool = False) -> None:
        """Commit them together, however long the database is away; lanes lost meanwhile are told so.

        When they meet a lock they are held up.
        """
        while groups:
            statements = queries([entry for group in groups for entry in group.entries])
            try:
                await self._session.execute(statements, briefly=was_held_up)
            except LockNotAvailable:
                if not was_held_up:
                    log.warning("a row is locked", extra={"lanes": [group.lane_id for group in groups]})
                self._held_up.put_back(groups)
                return
            except AWAY as error:
                log.warning("not committed yet", extra={"error": str(error), "groups": len(groups)})
                await self._recover(groups, error)
                groups = self._only_ours(groups)
            except psycopg.Error as error:
                # Something of the group cannot be stored: nobody may think that it was.
                await self._commit_singly(groups, error)
                return
            else:
                self._finish(groups)
                return

    async def _recover(self, groups: list[EntryGroup], error: Exception) -> None:
        """Make another try possible: what failed was the connection, or it may pass (a deadlock, a full disk).

        While the database takes no changes nothing is sent either, for no run can be recorded. The locks are kept, and
        what was under way is committed by this session as soon as it may write, or by a new one if only that may.
        """
        if isinstance(error, ReadOnlySqlTransaction) and await may_write():
            await self._session.give_up()
        if self._session.is_broken:
            await self._reconnect(groups)
        else:
            await asyncio.sleep(RECONNECT_SECONDS)

    async def _commit_singly(self, groups: list[EntryGroup], error: psycopg.Error) -> None:
        """One entry that cannot be stored must not cost the other lanes their outcomes."""
        if len(groups) > 1:
            for group in groups:
                await self._commit_groups(self._held_up.join([group]))
            return
        log.error("not committed", exc_info=error, extra={"lane": groups[0].lane_id})
        fail(groups, error)

    async def _fetch(self, name: str, parameters: dict[str, Any]) -> list[dict[str, Any]] | None:
        """Execute a statement of `delivery/sql`; None if the connection was lost and is there again."""
        try:
            return await self._session.fetch(name, parameters)
        except AWAY as error:
            log.warning("connection lost", extra={"error": str(error)})
            # The locks went with the connection; take them back before anything else.
            await self._recover([], error)
            return None

    async def _reconnect(self, groups: list[EntryGroup]) -> None:
        """Connect again and take the locks back."""
        while True:
            try:
                self.has_lost_slot = not await self._session.take_slot_back()
                await self._take_back(groups)
                break
            except AWAY:
                await asyncio.sleep(RECONNECT_SECONDS)

    def _only_ours(self, groups: Iterable[EntryGroup]) -> list[EntryGroup]:
        """Refuse what comes from lanes that were lost since it was handed in."""
        groups = list(groups)
        fail([group for group in groups if group.lane_id not in self._runs], LaneLostError())
        return [group for group in groups if group.lane_id in self._runs]

    async def _take_back(self, groups: Iterable[EntryGroup]) -> None:
        # Whether what was under way was committed is unknown: either run is ours.
        under_way = {group.lane_id: run for group in groups if (run := group.run_after) is not None}
        parameters = {"lane": list(self._runs), "lock_class": LANE_LOCKS}
        rows = await self._session.fetch("lock_lanes", parameters)
        found = {row["id"]: _recorded(row) for row in rows}
        kept = {
            lane_id: ids
            for lane_id, ids in self._runs.items()
            if lane_id in found and found[lane_id] in (ids, under_way.get(lane_id, ids))
        }
        strange = [lane_id for lane_id in found if lane_id not in kept]
        if strange:
            await self._session.fetch("unlock_lanes", {"lane": strange, "lock_class": LANE_LOCKS})
        self.may_lock_at = time.monotonic() + GRACE_SECONDS
        log.info("connected again", extra={"lanes": len(kept), "lost": len(self._runs) - len(kept)})
        self._runs = kept

    def _finish(self, groups: Iterable[EntryGroup]) -> None:
        for group in groups:
            run = group.run_after
            if run is not None and group.lane_id in self._runs:
                self._runs[group.lane_id] = run
            if not group.committed.done():
                group.committed.set_result(None)


def _recorded(row: Mapping[str, Any]) -> Recorded:
    return tuple(row["run_ids"]), tuple(row["run_attempts"])
