"""Publishers: each posts messages, one request after the other, over a connection that is kept.

A process of its own, `python -m tests.bench.publishers`, with its Wish as JSON.
"""

import asyncio
import json
import math
import sys
import time
from dataclasses import dataclass

import uvloop

from tests.bench.drained import Drained
from tests.bench.keepalive import Connection, open_connection
from tests.bench.message import BODY


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """So many messages in all, `batch` of them in a request, by so many connections to a web server on this machine.

    Given `seconds`, no request is begun after them.
    """

    port: int
    event_type: str
    key: str
    connections: int
    messages: int
    batch: int
    seconds: float = math.inf


class Publishers:
    """`left` are the messages that no connection has posted or is about to post."""

    def __init__(self, wish: Wish) -> None:
        self._wish = wish
        self._left = wish.messages
        self._until = math.inf
        self._published = 0
        item = b'{"event": "%s", "body": %s}' % (wish.event_type.encode(), BODY)
        self._body = BODY if wish.batch == 1 else b"[%s]" % b",".join([item] * wish.batch)
        self._path = (
            f"/api/v1/events/{wish.event_type}/messages" if wish.batch == 1 else "/api/v1/messages:batch"
        ).encode()

    async def run(self) -> Drained:
        connections = [
            await open_connection(self._wish.port, self._wish.key) for _ in range(self._wish.connections)
        ]
        began = time.monotonic()
        self._until = began + self._wish.seconds
        await asyncio.gather(*map(self._publish, connections))
        seconds = time.monotonic() - began
        for connection in connections:
            connection.close()
        return Drained(seconds=seconds, acknowledged=self._published)

    async def _publish(self, connection: Connection) -> None:
        while self._left > 0 and time.monotonic() < self._until:
            self._left -= self._wish.batch
            await connection.ask(b"POST", self._path, self._body)
            self._published += self._wish.batch


if __name__ == "__main__":
    uvloop.run(Publishers(Wish(**json.loads(sys.argv[1]))).run()).say()
