"""The connection on which a sender holds its locks and commits: what it holds ends with it."""

import contextlib
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, cast

import psycopg
from psycopg.rows import dict_row

from delivery.database import connect
from delivery.sql import statement

# Whoever holds a row for longer, other senders included, holds up only the lanes that want it: see `Settler`.
LOCK_TIMEOUT = "200ms"
# So long may a commit that met a lock before keep all others waiting.
BRIEF_LOCK_TIMEOUT = "10ms"

Statement = tuple[str, dict[str, Any]]

_BRIEFLY: Statement = ("SELECT set_config('lock_timeout', %(time)s, true)", {"time": BRIEF_LOCK_TIMEOUT})


class Session:
    """One connection at a time; `name` is what the other senders know it by, once it has a slot."""

    def __init__(self, *, name: str) -> None:
        self._name = name
        self._connection: psycopg.AsyncConnection | None = None
        self._cursor: psycopg.AsyncCursor | None = None
        self._slot: int | None = None
        self.server_started_at: datetime | None = None
        self.backend_id = 0

    @property
    def is_broken(self) -> bool:
        return self._connection is None or self._connection.closed

    async def take_slot(self, keys: Sequence[int]) -> bool:
        """Connect anew and take one of these locks; False if all are taken.

        Only with a slot does the connection bear the sender's name, by which the others know it.
        """
        await self.close()
        self._connection = connection = await connect("inturn")
        self._cursor = connection.cursor()
        # Else the locks of a killed sender whose commit waits for a row would be held until it gets it.
        await connection.execute("SET client_connection_check_interval = '500ms'")
        await connection.execute(f"SET lock_timeout = '{LOCK_TIMEOUT}'")
        # Asked for, and not what the connection was told at its start: a pooler makes that up.
        found = await connection.execute("SELECT pg_postmaster_start_time(), pg_backend_pid()")
        self.server_started_at, backend_id = await found.fetchone() or (None, 0)
        for key in keys:
            if await self._try_lock(key):
                await connection.execute("SELECT set_config('application_name', %s, false)", (self._name,))
                self._slot = key
                self.backend_id = backend_id
                return True
        return False

    async def take_slot_back(self) -> bool:
        """Connect again and take the slot that it had; False if another has it now."""
        return await self.take_slot([] if self._slot is None else [self._slot])

    async def give_up(self) -> None:
        """Close it, though it answers: its locks are free when this returns, and not a moment after."""
        with contextlib.suppress(psycopg.Error):
            await self._open().execute("SELECT pg_advisory_unlock_all()")
        await self.close()

    async def close(self) -> None:
        """Give everything back: the locks end with the connection."""
        if self._connection is not None:
            await self._connection.close()

    async def execute(self, statements: Sequence[Statement], *, briefly: bool = False) -> None:
        """Execute them in one transaction; `briefly` if it met a lock before."""
        if briefly:
            statements = [_BRIEFLY, *statements]
        elif len(statements) == 1 and self._cursor is not None:
            await self._cursor.execute(cast("Any", statements[0][0]), statements[0][1])
            return
        connection = self._open()
        async with connection.pipeline(), connection.transaction():
            for text, columns in statements:
                await connection.execute(cast("Any", text), columns)

    async def fetch(self, name: str, parameters: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Execute a statement of `delivery/sql`."""
        async with self._open().cursor(row_factory=dict_row) as cursor:
            await cursor.execute(cast("Any", statement(name)), parameters)
            return await cursor.fetchall()

    async def _try_lock(self, key: int) -> bool:
        cursor = await self._open().execute("SELECT pg_try_advisory_lock(%s)", (key,))
        row = await cursor.fetchone()
        return row is not None and bool(row[0])

    def _open(self) -> psycopg.AsyncConnection:
        if self._connection is None:
            raise psycopg.OperationalError("not connected")
        return self._connection
