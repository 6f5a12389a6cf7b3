"""Which subscriptions and lanes were configured otherwise since a sender last looked, and what holds and paces all of them now.

A look begins where the one before it was: with the oldest transaction that was under way then. So no change is missed,
however late it commits and whatever the clocks say; one that was seen may be seen again, and has the version that is
known already.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from delivery.senders.reader import Reader


@dataclass(frozen=True, slots=True)
class Changed:
    """Versions of subscriptions by id, and rows of lanes; `is_all`: whatever is known may be old.

    `is_held`: all sending is HELD. `rates` are those of the lanes that catch up on what was held.
    """

    versions: Mapping[int, str]
    lanes: Sequence[Mapping[str, Any]]
    is_all: bool = False
    is_held: bool = False
    rates: Mapping[int, float] = field(default_factory=dict)


class Changes:
    """The looks of one sender; the first finds nothing, so it comes before anything is known."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._horizon: int | None = None
        self._at: datetime | None = None
        self._connected = 0

    async def look(self) -> Changed:
        since = {"horizon": self._horizon, "at": self._at}
        rows = await self._reader.fetch("changed_subscriptions", since)
        lanes = await self._reader.fetch("changed_lanes", {"horizon": self._horizon})
        rates = {row["id"]: row["catch_up_rate"] for row in await self._reader.fetch("catching_up")}
        # Another server may answer a new connection, or a backup was restored: they number their transactions anew.
        is_another = self._reader.connected != self._connected
        is_all = self._horizon is not None and (is_another or rows[0]["horizon"] < self._horizon)
        self._connected = self._reader.connected
        self._horizon, self._at = rows[0]["horizon"], rows[0]["at"]
        versions = {row["id"]: row["version"] for row in rows if row["id"] is not None}
        return Changed(versions, lanes, is_all=is_all, is_held=rows[0]["is_held"], rates=rates)
