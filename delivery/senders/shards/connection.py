"""The connection on which a sender holds its locks and commits; the locks end with it.

A sender that is frozen (stopped, swapped out, on a machine that sleeps) must not hold its shards
for ever, and must send nothing after another sender has them. The server ends a session that is
idle for IDLE_TIMEOUT, and the other senders end a session whose server process has waited for its
client for FROZEN_SECONDS. A sender begins no attempt when its last successful statement began more
than LEASE_SECONDS ago, which is less. All these clocks run while a process is frozen. So a sender
that wakes up late sends nothing before it has called the server, and this call shows that the
session is over.
"""

import asyncio
import contextlib
import logging
import os
import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, cast

import psycopg
from psycopg.errors import InsufficientPrivilege
from psycopg.rows import dict_row

from delivery.database.connections import CHANNEL, connect_sender
from delivery.database.statements import statement
from delivery.models.lane import MEMBER_LOCKS, SHARD_LOCKS
from delivery.senders.clock import seconds_since_boot
from delivery.senders.shards.sharing import Member, member_of, slots_for
from delivery.senders.shards.silence import Silence, Waiting

log = logging.getLogger(__name__)

# Somebody, another sender included, who holds a row lock for longer delays only the lanes that need
# the row: see `GroupCommit`.
LOCK_TIMEOUT = "200ms"
# A commit that met a lock before may delay all others by this much.
BRIEF_LOCK_TIMEOUT = "10ms"
# Other senders take a frozen sender's shards at the latest this long after its last statement; see
# also `delivery.senders.shards.silence`.
IDLE_TIMEOUT = "7s"
LEASE_SECONDS = 5.0
# A server process that is ended exits this fast.
EXIT_SECONDS = 0.01

# A killed sender whose commit waits for a row must lose its locks before it gets the row.
_SETTINGS = f"""
    SET client_connection_check_interval = '500ms';
    SET lock_timeout = '{LOCK_TIMEOUT}';
    SET idle_session_timeout = '{IDLE_TIMEOUT}';
    SET idle_in_transaction_session_timeout = '{IDLE_TIMEOUT}';
"""

Statement = tuple[str, dict[str, Any]]

_BRIEFLY: Statement = (
    "SELECT set_config('lock_timeout', %(time)s, true)",
    {"time": BRIEF_LOCK_TIMEOUT},
)


class SenderConnection:
    """A connection at a time, of the sender with this number on its machine.

    `slot` is the number by which other senders know this sender; None until it has a slot.
    """

    def __init__(self, *, number: int = 0) -> None:
        self._number = number
        self._connection: psycopg.AsyncConnection | None = None
        self._cursor: psycopg.AsyncCursor | None = None
        self._owner = uuid.uuid4()
        self._silence = Silence()
        self._last_statement_at = float("-inf")
        # The beginning of each name of this sender's connections.
        self._own = f"inturn sender {os.getpid()} "
        self._name = ""
        # The server process of the connection: id and beginning.
        self._process: dict[str, Any] | None = None
        self.slot: int | None = None
        self.server_started_at: datetime | None = None

    @property
    def is_broken(self) -> bool:
        return self._connection is None or self._connection.closed

    @property
    def is_leased(self) -> bool:
        """True if the server, as far as we can know, holds our locks now."""
        return self.seconds_silent < LEASE_SECONDS

    @property
    def seconds_silent(self) -> float:
        """The seconds since the last answered statement began."""
        return seconds_since_boot() - self._last_statement_at

    async def take_slot(self) -> bool:
        """Connect again and take the previous slot, or the first free slot for the number.

        The locks of the previous connection are free when this returns. Return False if all slots
        are taken.
        """
        await self.close()
        began = seconds_since_boot()
        self._connection = connection = await connect_sender("inturn")
        self._cursor = connection.cursor()
        await connection.execute(_SETTINGS, prepare=False)
        await self._end_previous()
        (process,) = await self.fetch("server_process", {})
        self.server_started_at = process.pop("server_started_at")
        self._process = process
        slots = [*([] if self.slot is None else [self.slot]), *slots_for(self._number)]
        rows = await self.fetch("take_slot", {"slot": slots, "lock_class": MEMBER_LOCKS})
        slot: int | None = rows[0]["slot"] if rows else None
        if slot is not None and slot == self.slot:
            # Publish the previous values, so that senders who look meanwhile see no change.
            await self.fetch("members", {"name": self._name})
        self.slot = slot
        self._last_statement_at = began
        return slot is not None

    async def _end_previous(self) -> None:
        """End the previous session and wait until its locks are free.

        The server may not have noticed that the client is gone, and an ending session reports so
        before it releases the locks. Without this wait the sender would not get its shards back.
        """
        try:
            while self._process and await self.fetch(
                "end_previous", {**self._process, "name": self._own}
            ):
                await asyncio.sleep(EXIT_SECONDS)
        except InsufficientPrivilege as error:
            log.warning("the previous session has another role", extra={"error": str(error)})

    async def members(self, *, busy_percent: int, sharing: int) -> tuple[Member, list[Member]]:
        """Publish this sender's values, and return them and those of the running senders.

        Sessions of frozen senders are ended.
        """
        myself = Member(self.slot or 0, busy_percent, sharing)
        self._name = f"{self._own}{myself.slot} {busy_percent} {sharing}"
        rows = await self.fetch("members", {"name": self._name})
        waiting = [(row["pid"], row["state_change"]) for row in rows if row["is_waiting"]]
        if frozen := self._silence.frozen(waiting, now=seconds_since_boot()):
            await self._end(frozen)
        return myself, [member_of(row) for row in rows]

    async def _end(self, frozen: Sequence[Waiting]) -> None:
        pids, state_changes = zip(*frozen, strict=True)
        try:
            ended = await self.fetch(
                "end_frozen", {"pid": list(pids), "state_change": list(state_changes)}
            )
        except InsufficientPrivilege as error:
            log.warning("a sender is frozen, and has another role", extra={"error": str(error)})
            return
        log.warning("ended frozen senders", extra={"names": [row["name"] for row in ended]})

    async def lock(self, shards: Sequence[int]) -> list[int]:
        """Lock those of these shards that no other sender has, and return them."""
        try:
            rows = await self.fetch("lock_shards", {"shard": shards, "lock_class": SHARD_LOCKS})
        except psycopg.Error:
            # It is unknown which of them were locked.
            await self.close_open_session()
            raise
        return [row["shard"] for row in rows]

    async def claim(self, locked: Sequence[int]) -> dict[int, int]:
        """Record locked shards as ours, and return their epochs."""
        rows = await self.fetch("claim_shards", {"shard": locked, "owner": self._owner})
        return {row["id"]: row["epoch"] for row in rows}

    async def release(self, shards: Sequence[int]) -> None:
        try:
            await self.fetch(
                "unlock_shards", {"shard": shards, "lock_class": SHARD_LOCKS, "channel": CHANNEL}
            )
        except psycopg.Error:
            await self.close_open_session()
            raise

    async def close_open_session(self) -> None:
        """Close the session although it answers; its locks are free when this returns."""
        with contextlib.suppress(psycopg.Error):
            await self._open().execute("SELECT pg_advisory_unlock_all()")
        await self.close()

    async def close(self) -> None:
        """Give everything back: the locks end with the connection."""
        if self._connection is not None:
            await self._connection.close()

    async def execute(self, statements: Sequence[Statement], *, briefly: bool = False) -> None:
        """Execute the statements in a transaction; `briefly` if they met a lock before."""
        began = seconds_since_boot()
        if briefly:
            statements = [_BRIEFLY, *statements]
        if len(statements) == 1 and self._cursor is not None:
            await self._cursor.execute(cast("Any", statements[0][0]), statements[0][1])
        else:
            connection = self._open()
            async with connection.pipeline(), connection.transaction():
                for text, columns in statements:
                    await connection.execute(cast("Any", text), columns)
        self._last_statement_at = began

    async def fetch(self, name: str, parameters: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Execute a named statement and return its rows."""
        began = seconds_since_boot()
        async with self._open().cursor(row_factory=dict_row) as cursor:
            await cursor.execute(cast("Any", statement(name)), parameters)
            rows = await cursor.fetchall()
        self._last_statement_at = began
        return rows

    def _open(self) -> psycopg.AsyncConnection:
        if self._connection is None:
            raise psycopg.OperationalError("not connected")
        return self._connection
