"""The configuration changes since a sender's last look, and the present hold and rates of lanes.

A look begins at the oldest transaction that was under way during the previous look. So it misses no
change, however late it commits and whatever the clocks show. A look may find a change twice: the
version is then known already.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from delivery.senders.read_connection import ReadConnection


@dataclass(frozen=True, slots=True)
class Changed:
    """Versions of subscriptions by id, and rows of lanes.

    `is_all`: everything in memory may be old. `is_held`: all sending is HELD. `rates` has the rates
    of lanes that catch up on held deliveries.
    """

    versions: Mapping[int, str]
    lanes: Sequence[Mapping[str, Any]]
    is_all: bool = False
    is_held: bool = False
    rates: Mapping[int, float] = field(default_factory=dict)


class Changes:
    """The looks of a sender. The first look finds nothing, so make it before reading anything."""

    def __init__(self, read_connection: ReadConnection) -> None:
        self._read_connection = read_connection
        self._horizon: int | None = None
        self._at: datetime | None = None
        self._connected = 0

    async def read(self) -> Changed:
        since = {"horizon": self._horizon, "at": self._at}
        rows = await self._read_connection.fetch("changed_subscriptions", since)
        lanes = await self._read_connection.fetch("changed_lanes", {"horizon": self._horizon})
        rates = {
            row["id"]: row["catch_up_rate"]
            for row in await self._read_connection.fetch("catching_up")
        }
        # A new connection may reach another server, or a backup was restored: both number their
        # transactions from a different point.
        is_another = self._read_connection.connected != self._connected
        is_all = self._horizon is not None and (is_another or rows[0]["horizon"] < self._horizon)
        self._connected = self._read_connection.connected
        self._horizon, self._at = rows[0]["horizon"], rows[0]["at"]
        versions = {row["id"]: row["version"] for row in rows if row["id"] is not None}
        return Changed(versions, lanes, is_all=is_all, is_held=rows[0]["is_held"], rates=rates)
