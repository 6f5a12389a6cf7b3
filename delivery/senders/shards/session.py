"""A sender's session: slot, shards and heartbeat on the one connection on which it also commits.

`commits/group_commit.py` commits on this session and on nothing else. The advisory locks of the
shards end with the connection, so a sender that lost its locks cannot commit.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from datetime import datetime
from typing import Any, TypeVar

from psycopg.errors import ReadOnlySqlTransaction

from delivery.database.connections import AWAY, may_write
from delivery.senders.shards.claimed_shards import ClaimedShards
from delivery.senders.shards.connection import SenderConnection, Statement
from delivery.senders.shards.sharing import Member

log = logging.getLogger(__name__)

Answer = TypeVar("Answer")

RETRY_SECONDS = 0.2
# The interval of the heartbeat: without it the server and other senders treat us as frozen.
HEARTBEAT_SECONDS = 1.0


class SenderSession:
    """One at a time uses the connection: hold `turn` while executing anything.

    `send_heartbeats` must be running while shards are held.
    """

    def __init__(self, *, number: int = 0) -> None:
        self._connection = SenderConnection(number=number)
        self.turn = asyncio.Lock()
        self.claimed = ClaimedShards(self._connection)

    async def connect(self) -> bool:
        """Connect and take a slot; False if all are taken."""
        return await self._connection.take_slot()

    async def close(self) -> None:
        """Give everything back: the locks end with the connection."""
        await self._connection.close()

    @property
    def server_started_at(self) -> datetime | None:
        return self._connection.server_started_at

    async def send_heartbeats(self) -> None:
        """Execute a statement whenever none was executed for HEARTBEAT_SECONDS."""
        while True:
            await asyncio.sleep(HEARTBEAT_SECONDS)
            if self._connection.seconds_silent >= HEARTBEAT_SECONDS:
                await self._retry(lambda: self._connection.fetch("heartbeat", {}))

    async def members(
        self, *, busy_percent: int = 0, sharing: int = 1
    ) -> tuple[Member, list[Member]]:
        """Return this sender and the others, and publish these values to them: `members.sql`."""
        return await self._retry(
            lambda: self._connection.members(busy_percent=busy_percent, sharing=sharing)
        )

    async def claim(self, shards: Sequence[int]) -> set[int]:
        """Claim those of these shards that nobody holds, and return them."""
        async with self.turn:
            try:
                return await self.claimed.claim(shards)
            except AWAY as error:
                await self.recover(error)
                return set()

    async def release(self, shards: Sequence[int]) -> None:
        """Give shards back; a lane of theirs that is still served is lost."""
        async with self.turn:
            try:
                await self.claimed.release(shards)
            except AWAY as error:
                await self.recover(error)

    async def execute(self, statements: Sequence[Statement], *, briefly: bool = False) -> None:
        """Execute the statements in a transaction; `briefly` if they met a lock before.

        Hold `turn`, and call `recover` after an error of AWAY, before anything else is executed.
        """
        await self._connection.execute(statements, briefly=briefly)

    async def recover(self, error: Exception) -> None:
        """Make another try possible; hold `turn`.

        The connection failed, or the error may pass (a deadlock, a full disk). While the database
        takes no changes nothing is sent either, because no run can be recorded. The locks are kept,
        and the entries in hand are committed on this connection as soon as it may write, or on a
        new connection if only a new connection may.
        """
        log.warning("the database does not answer as it should", extra={"error": str(error)})
        if isinstance(error, ReadOnlySqlTransaction) and await may_write():
            await self._connection.close_open_session()
        if self._connection.is_broken:
            await self.claimed.reconnect()
        else:
            await asyncio.sleep(RETRY_SECONDS)

    async def _retry(self, query: Callable[[], Coroutine[Any, Any, Answer]]) -> Answer:
        """Query the database; repeat it after a lost connection is back."""
        while True:
            async with self.turn:
                try:
                    return await query()
                except AWAY as error:
                    # The locks were lost with the connection; take them back before anything else.
                    await self.recover(error)
