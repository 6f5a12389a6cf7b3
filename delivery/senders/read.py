"""The reading connection of a sender. Nothing here holds a lock, so a lost connection only means to read again."""

import asyncio
import logging
from collections.abc import Sequence
from typing import Any, cast

import psycopg
from psycopg.rows import dict_row

from delivery.database import AWAY, connect
from delivery.senders.endpoints import endpoint_of
from delivery.senders.parcel import Endpoint
from delivery.senders.runs import RunRequest, columns_of
from delivery.sql import statement

log = logging.getLogger(__name__)

RECONNECT_SECONDS = 0.2
# Of one statement, until that is taken for a fault of ours.
MOST_REFUSALS = 3


class Reader:
    """The reading connection of one sender."""

    def __init__(self, *, name: str) -> None:
        self._name = name
        self._turn = asyncio.Lock()
        self._connection: psycopg.AsyncConnection | None = None
        # How often it has connected.
        self.connected = 0

    async def runs(self, requests: Sequence[RunRequest]) -> list[dict[str, Any]]:
        """Read the next runs of these lanes."""
        return await self.fetch("read_runs", columns_of(requests))

    async def endpoints(self, subscription_ids: Sequence[int]) -> list[Endpoint]:
        rows = await self.fetch("endpoints", {"subscription": list(subscription_ids)})
        return [endpoint_of(row) for row in rows]

    async def fetch(self, name: str, parameters: dict[str, Any] | None = None) -> list[dict[str, Any]]:
        """Execute a reading statement of `delivery/sql`, as often as it takes while the database is away.

        What the database refuses time and again is raised: it is a fault of ours, and must stop nobody else.
        """
        refused = 0
        while True:
            async with self._turn:
                try:
                    return await self._fetch(name, parameters)
                except psycopg.Error as error:
                    refused += not isinstance(error, AWAY)
                    if refused >= MOST_REFUSALS:
                        raise
                    log.warning("cannot read", extra={"error": str(error)})
                    # A migration may have made a prepared plan useless: a new connection knows none.
                    await self.close()
            await asyncio.sleep(RECONNECT_SECONDS)

    async def close(self) -> None:
        if self._connection is not None:
            await self._connection.close()
            self._connection = None

    async def _fetch(self, name: str, parameters: dict[str, Any] | None) -> list[dict[str, Any]]:
        if self._connection is None:
            self._connection = await connect(self._name)
            self.connected += 1
        async with self._connection.cursor(row_factory=dict_row, binary=True) as cursor:
            await cursor.execute(cast("Any", statement(name)), parameters)
            return await cursor.fetchall()
