"""Group commit: what the lanes of a sender hand in is committed together.

It is committed on the sender's session, whose connection has the locks of the sender's shards: a
sender that lost its locks cannot commit. A request that meets a row lock waits, and delays no other
lane. See *Group commit* in `senders/README.md`.
"""

import asyncio
import logging
from collections.abc import Iterable, Sequence

import psycopg
from psycopg.errors import LockNotAvailable

from delivery.database.connections import AWAY
from delivery.senders.commits.commit_requests import CommitRequest, LockedRequests, fail_requests
from delivery.senders.commits.commit_statements import commit_statements
from delivery.senders.entries import Entry
from delivery.senders.shards.claimed_shards import LaneLostError
from delivery.senders.shards.session import SenderSession

log = logging.getLogger(__name__)

# Requests that met a lock are tried again at this interval.
LOCKED_SECONDS = 0.5
# Entries for which nothing else of their lane waits are committed after this time at the latest:
# the answers to one message's deliveries arrive together, and share a flush of the WAL.
GATHER_SECONDS = 0.002
# At most so many requests are committed together: a part of `settle.sql`, the join of verdicts and
# deliveries, grows with the square. With 128 requests the join is a twelfth of the statement's
# time; with 4,000 it took 2.3 s. The others follow at once.
MOST_TOGETHER = 128


class GroupCommit:
    """The group commit of one sender, on its session. `run` must be running during `commit`."""

    def __init__(self, session: SenderSession) -> None:
        self.session = session
        self._claimed = session.claimed
        self._waiting: list[CommitRequest] = []
        self._arrived = asyncio.Event()
        # `get_running_loop` makes a system call each time.
        self._loop = asyncio.get_running_loop()
        self._were_many = False
        self._locked = LockedRequests()

    async def commit(self, lane_id: int, *entries: Entry, is_urgent: bool = True) -> None:
        """Return when the entries are on disk.

        Raise LaneLostError if the lane is no longer ours. A lane that commits alone takes a shorter
        path; many are faster together. Entries that are not urgent wait a moment for others, and
        are committed with the first that are. Cancelling the call aborts the commit, so only a
        sender that ends may do so.
        """
        request = self._request(lane_id, entries)
        if not is_urgent:
            self._waiting.append(request)
            self._loop.call_later(GATHER_SECONDS, self._arrived.set)
        elif self._waiting or self._were_many or self.session.turn.locked():
            self._waiting.append(request)
            self._arrived.set()
        else:
            async with self.session.turn:
                await self._commit_together(self._locked.join(self._served([request])))
        await request.committed

    async def run(self) -> None:
        """Commit arriving entries until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._commit_arriving())
            tasks.create_task(self._commit_locked())

    @property
    def locked_lanes(self) -> Sequence[int]:
        """The lanes that wait for a row locked by somebody else."""
        return self._locked.lane_ids

    async def _commit_arriving(self) -> None:
        while True:
            await self._arrived.wait()
            async with self.session.turn:
                self._arrived.clear()
                if not self._waiting:
                    continue
                requests, self._waiting = (
                    self._waiting[:MOST_TOGETHER],
                    self._waiting[MOST_TOGETHER:],
                )
                if self._waiting:
                    self._arrived.set()
                self._were_many = len(requests) > 1
                # Only a task that reads ahead is cancelled: the run to record is void.
                wanted = [request for request in requests if not request.committed.cancelled()]
                await self._commit_together(self._locked.join(self._served(wanted)))

    async def _commit_locked(self) -> None:
        while True:
            await self._locked.is_any.wait()
            for lane_id in self._locked.lane_ids:
                while await self._commit_first_locked(lane_id):
                    continue
            if self._locked.lane_ids:
                await asyncio.sleep(LOCKED_SECONDS)

    async def _commit_first_locked(self, lane_id: int) -> bool:
        """Try the lane's first request; False without any, or if the request still meets a lock."""
        async with self.session.turn:
            request = self._locked.take(lane_id)
            if request is None:
                return False
            await self._commit_together(self._served([request]), was_locked=True)
            return request.committed.done()

    def _request(self, lane_id: int, entries: tuple[Entry, ...]) -> CommitRequest:
        if not self._claimed.is_serving(lane_id):
            raise LaneLostError
        return CommitRequest(lane_id, entries, self._loop.create_future())

    async def _commit_together(
        self, requests: list[CommitRequest], *, was_locked: bool = False
    ) -> None:
        """Commit the requests together, however long the database is away.

        Fail lanes lost meanwhile. Requests that meet a lock go to `LockedRequests`.
        """
        while requests:
            statements = commit_statements(
                [entry for request in requests for entry in request.entries]
            )
            try:
                await self.session.execute(statements, briefly=was_locked)
            except LockNotAvailable:
                if not was_locked:
                    log.warning(
                        "a row is locked",
                        extra={"lanes": [request.lane_id for request in requests]},
                    )
                self._locked.put_back(requests)
                return
            except AWAY as error:
                await self.session.recover(error)
                requests = self._served(requests)
            except psycopg.Error as error:
                # An entry of a request cannot be stored: no caller may go on as if it were.
                await self._commit_singly(requests, error)
                return
            else:
                _finish(requests)
                return

    async def _commit_singly(self, requests: list[CommitRequest], error: psycopg.Error) -> None:
        """Commit one request at a time.

        An entry that cannot be stored must not cost other lanes their outcomes.
        """
        if len(requests) > 1:
            for request in requests:
                await self._commit_together(self._locked.join([request]))
            return
        log.error("not committed", exc_info=error, extra={"lane": requests[0].lane_id})
        fail_requests(requests, error)

    def _served(self, requests: Iterable[CommitRequest]) -> list[CommitRequest]:
        """Fail the requests of lanes that were lost meanwhile, and return the others."""
        served: list[CommitRequest] = []
        lost: list[CommitRequest] = []
        for request in requests:
            (served if self._claimed.is_serving(request.lane_id) else lost).append(request)
        fail_requests(lost, LaneLostError())
        return served


def _finish(requests: Iterable[CommitRequest]) -> None:
    for request in requests:
        if not request.committed.done():
            request.committed.set_result(None)
