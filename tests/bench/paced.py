"""A publisher at a steady pace: it posts each message when it is due.

Unanswered posts do not delay the next ones.
"""

import asyncio
import random
import time
from dataclasses import dataclass

import orjson
import uvloop

from tests.bench.keepalive import KeepAliveConnection, open_connection
from tests.bench.message import BODY

# The most posts in flight.
CONNECTIONS = 16
# Keeps the pace from aligning with periodic events.
JITTER = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishingPace:
    """So many messages per second for so many seconds, with a key, to a local web server."""

    port: int
    event_type: str
    key: str
    rate: float
    seconds: float


class PacedPublisher:
    """`posted` has, by message id, the moment of the monotonic clock at which each message was due.

    A post waiting for a free connection counts as late.
    """

    def __init__(self, pace: PublishingPace) -> None:
        self._pace = pace
        self._path = f"/api/v1/events/{pace.event_type}/messages".encode()
        self._free: asyncio.Queue[KeepAliveConnection] = asyncio.Queue()
        self.posted: dict[int, float] = {}

    def publish(self) -> None:
        """Post all messages, and wait for the answers."""
        uvloop.run(self._publish())

    async def _publish(self) -> None:
        connections = [
            await open_connection(self._pace.port, self._pace.key) for _ in range(CONNECTIONS)
        ]
        for connection in connections:
            self._free.put_nowait(connection)
        began = time.monotonic()
        async with asyncio.TaskGroup() as posts:
            for moment in _moments(self._pace):
                await asyncio.sleep(began + moment - time.monotonic())
                posts.create_task(self._post(began + moment))
        for connection in connections:
            connection.close()

    async def _post(self, due: float) -> None:
        connection = await self._free.get()
        answer = orjson.loads(await connection.ask(b"POST", self._path, BODY))
        self.posted[int(answer["id"].removeprefix("msg_"))] = due
        self._free.put_nowait(connection)


def _moments(pace: PublishingPace) -> list[float]:
    """Return when each message is due, in seconds from the first: the same in every run."""
    chance = random.Random(0)
    apart = 1 / pace.rate
    count = max(round(pace.seconds * pace.rate), 1)
    return [(number + chance.uniform(0, JITTER)) * apart for number in range(count)]
