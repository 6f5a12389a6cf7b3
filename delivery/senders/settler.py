"""Group commit: the one connection on which a sender holds its shards' locks and commits.

All lanes of a process hand their entries to one committer. While a commit is under way,
what arrives waits and is committed together next: a lane waits for about one commit, and many
lanes share it. A lane that is alone commits by itself, which spares it two turns of the event loop.

Because outcomes are committed on the very connection that holds the advisory
locks, a sender that lost its locks cannot commit. When the connection is lost the
sender connects again and takes its shards back. A shard that nobody served
meanwhile has the epoch that we know, and goes on as if nothing had happened: the outcome under
way, which may or may not have been committed, is committed now, and the statements
change nothing the second time, but for the counts of URLs' health, where one more does not matter. The lanes of a shard that
another sender took are lost to us: LaneLostError. So they are to whoever was frozen for so long that its session was ended.

Whoever locks a row that a group wants to change (a bulk job, a migration, a person at psql) must hold up no other
lane. So a statement waits for a lock for a moment only. When it does not get it the transaction is rolled back, and
its groups go to `HeldUp`, from where they are committed one by one: those that the lock does not concern at once, the others again and again,
while the committer's turn is free in between. A lane still waits until what it handed in is on disk, and what it
hands in meanwhile is committed after that.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable, Sequence
from datetime import datetime
from typing import Any, TypeVar

import psycopg
from psycopg.errors import LockNotAvailable, ReadOnlySqlTransaction

from delivery.database.connections import AWAY, may_write
from delivery.senders.entries import Entry
from delivery.senders.group_statements import queries
from delivery.senders.groups import EntryGroup, HeldUp, fail
from delivery.senders.holding import LaneLostError, ShardHolding
from delivery.senders.session import Session
from delivery.senders.sharing import Member

log = logging.getLogger(__name__)

Answer = TypeVar("Answer")

RETRY_SECONDS = 0.2
# The server hears of us at least this often, or takes us for frozen.
SPEAK_SECONDS = 1.0
# What met a lock is tried again this often.
HELD_UP_SECONDS = 0.5


class Settler:
    """The committer of one sender. `run` must be running while anything else is awaited."""

    def __init__(self) -> None:
        self._session = Session()
        self._waiting: list[EntryGroup] = []
        self._arrived = asyncio.Event()
        self._turn = asyncio.Lock()
        self._were_many = False
        self._held_up = HeldUp()
        self.holding = ShardHolding(self._session)

    async def commit(self, lane_id: int, *entries: Entry) -> None:
        """Return when the entries are on disk; raises LaneLostError if the lane is no longer ours.

        One that commits alone takes a shorter way; many are better off together. Cancelling it breaks the commit off, so
        only a sender that ends may do so.
        """
        group = self._group(lane_id, entries)
        if self._waiting or self._were_many or self._turn.locked():
            self._waiting.append(group)
            self._arrived.set()
        else:
            async with self._turn:
                await self._commit_groups(self._held_up.join(self._only_ours([group])))
        await group.committed

    async def run(self) -> None:
        """Commit what arrives, until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._commit_what_arrives())
            tasks.create_task(self._commit_held_up())
            tasks.create_task(self._speak())

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

    async def _speak(self) -> None:
        """Let the server hear of us, however long nobody else has anything to say."""
        while True:
            await asyncio.sleep(SPEAK_SECONDS)
            if self._session.seconds_silent >= SPEAK_SECONDS:
                await self._insist(lambda: self._session.fetch("speak", {}))

    async def _commit_first_held_up(self, lane_id: int) -> bool:
        """Try the lane's first group; False if there is none, or it is held up still."""
        async with self._turn:
            group = self._held_up.take(lane_id)
            if group is None:
                return False
            await self._commit_groups(self._only_ours([group]), was_held_up=True)
            return group.committed.done()

    async def connect(self) -> bool:
        """Connect and take a slot; False if all are taken."""
        return await self._session.take_slot()

    async def members(self, *, busy_percent: int = 0, sharing: int = 1) -> tuple[Member, list[Member]]:
        """Return this sender and those at work, and let them know of it; see `members.sql`."""
        return await self._insist(lambda: self._session.members(busy_percent=busy_percent, sharing=sharing))

    async def claim(self, shards: Sequence[int]) -> set[int]:
        """Take those of these shards that nobody has, and return them."""
        async with self._turn:
            try:
                return await self.holding.claim(shards)
            except AWAY as error:
                await self._recover(error)
                return set()

    async def release(self, shards: Sequence[int]) -> None:
        """Give shards back; a lane of theirs that is served is lost."""
        async with self._turn:
            try:
                await self.holding.release(shards)
            except AWAY as error:
                await self._recover(error)

    async def close(self) -> None:
        """Give everything back: the locks end with the connection."""
        await self._session.close()

    @property
    def server_started_at(self) -> datetime | None:
        return self._session.server_started_at

    def _group(self, lane_id: int, entries: tuple[Entry, ...]) -> EntryGroup:
        if not self.holding.is_serving(lane_id):
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
                await self._recover(error)
                groups = self._only_ours(groups)
            except psycopg.Error as error:
                # Something of the group cannot be stored: nobody may think that it was.
                await self._commit_singly(groups, error)
                return
            else:
                _finish(groups)
                return

    async def _recover(self, error: Exception) -> None:
        """Make another try possible: what failed was the connection, or it may pass (a deadlock, a full disk).

        While the database takes no changes nothing is sent either, for no run can be recorded. The locks are kept, and
        what was under way is committed by this session as soon as it may write, or by a new one if only that may.
        """
        log.warning("the database does not answer as it should", extra={"error": str(error)})
        if isinstance(error, ReadOnlySqlTransaction) and await may_write():
            await self._session.give_up()
        if self._session.is_broken:
            await self.holding.reconnect()
        else:
            await asyncio.sleep(RETRY_SECONDS)

    async def _commit_singly(self, groups: list[EntryGroup], error: psycopg.Error) -> None:
        """One entry that cannot be stored must not cost the other lanes their outcomes."""
        if len(groups) > 1:
            for group in groups:
                await self._commit_groups(self._held_up.join([group]))
            return
        log.error("not committed", exc_info=error, extra={"lane": groups[0].lane_id})
        fail(groups, error)

    async def _insist(self, ask: Callable[[], Coroutine[Any, Any, Answer]]) -> Answer:
        """Ask the database, again when the connection was lost and is there again."""
        while True:
            async with self._turn:
                try:
                    return await ask()
                except AWAY as error:
                    # The locks went with the connection; take them back before anything else.
                    await self._recover(error)

    def _only_ours(self, groups: Iterable[EntryGroup]) -> list[EntryGroup]:
        """Refuse what comes from lanes that were lost since it was handed in."""
        ours: list[EntryGroup] = []
        lost: list[EntryGroup] = []
        for group in groups:
            (ours if self.holding.is_serving(group.lane_id) else lost).append(group)
        fail(lost, LaneLostError())
        return ours


def _finish(groups: Iterable[EntryGroup]) -> None:
    for group in groups:
        if not group.committed.done():
            group.committed.set_result(None)
