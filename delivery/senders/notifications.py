"""Listening for notifications: they save time, and the poll finds what they miss."""

import asyncio
import logging
from dataclasses import dataclass

import psycopg

from delivery.database.connections import AWAY, CHANNEL, connect_sender

log = logging.getLogger(__name__)

RECONNECT_SECONDS = 0.5
# The payload that stands for a gap in listening.
GAP = "gap"


@dataclass(frozen=True, slots=True, kw_only=True)
class Notification:
    """The content of notifications.

    The lanes with work, the nudged lanes, whether subscriptions changed, and whether a sender gave
    shards back.
    """

    lanes: frozenset[int] = frozenset()
    nudged: frozenset[int] = frozenset()
    is_change: bool = False
    has_released_shards: bool = False
    # We did not listen for a while: each lane has to check whether it was nudged.
    is_gap: bool = False


class NotificationListener:
    """The listening connection of a sender; `run` must be running."""

    def __init__(self, *, name: str) -> None:
        self._name = name
        self._payloads: asyncio.Queue[str] = asyncio.Queue()
        self._has_listened = False
        self._connection: psycopg.AsyncConnection | None = None

    async def run(self) -> None:
        """Listen until cancelled; reconnect as often as needed."""
        while True:
            try:
                await self._listen()
            except AWAY as error:
                log.warning("cannot listen", extra={"error": str(error)})
                await asyncio.sleep(RECONNECT_SECONDS)

    async def next(self, *, seconds: float) -> Notification | None:
        """Return all notifications since the last call together; None if none came in time."""
        try:
            async with asyncio.timeout(seconds):
                payloads = [await self._payloads.get()]
        except TimeoutError:
            return None
        while not self._payloads.empty():
            payloads.append(self._payloads.get_nowait())
        return notification_of(payloads)

    async def close(self) -> None:
        if self._connection is not None:
            await self._connection.close()

    async def _listen(self) -> None:
        self._connection = await connect_sender(self._name)
        await self._connection.execute(f"LISTEN {CHANNEL}")
        if self._has_listened:
            self._payloads.put_nowait(GAP)
        self._has_listened = True
        async for notification in self._connection.notifies():
            self._payloads.put_nowait(notification.payload)


def notification_of(payloads: list[str]) -> Notification:
    """Parse payloads such as `work 1,2`, `nudge 3`, `released` and `changed`."""
    lanes: set[int] = set()
    nudged: set[int] = set()
    is_change = has_released_shards = is_gap = False
    for payload in payloads:
        word, _, ids = payload.partition(" ")
        numbers = {int(id) for id in ids.split(",") if id}
        match word:
            case "work":
                lanes |= numbers
            case "nudge":
                nudged |= numbers
            case "released":
                has_released_shards = True
            case _ if word == GAP:
                is_gap = True
            case _:
                is_change = True
    return Notification(
        lanes=frozenset(lanes),
        nudged=frozenset(nudged),
        is_change=is_change,
        has_released_shards=has_released_shards,
        is_gap=is_gap,
    )
