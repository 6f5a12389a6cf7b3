"""Publishers: each posts messages, in turn, over a keep-alive connection.

It is a separate process, `python -m tests.bench.publishers`, with a PublishLoad as JSON.
"""

import asyncio
import json
import math
import sys
import time
from dataclasses import dataclass

import uvloop

from tests.bench.drained import Drained
from tests.bench.keepalive import KeepAliveConnection, open_connection
from tests.bench.message import BODY


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishLoad:
    """So many messages in total, `batch` per request, by so many connections.

    If `seconds` is set, no request begins after them.
    """

    port: int
    event_type: str
    key: str
    connections: int
    messages: int
    batch: int
    seconds: float = math.inf


class Publishers:
    """`left` is the number of messages neither posted nor about to be posted by a connection."""

    def __init__(self, load: PublishLoad) -> None:
        self._load = load
        self._left = load.messages
        self._until = math.inf
        self._published = 0
        item = b'{"event": "%s", "body": %s}' % (load.event_type.encode(), BODY)
        self._body = BODY if load.batch == 1 else b"[%s]" % b",".join([item] * load.batch)
        self._path = (
            f"/api/v1/events/{load.event_type}/messages"
            if load.batch == 1
            else "/api/v1/messages:batch"
        ).encode()

    async def run(self) -> Drained:
        connections = [
            await open_connection(self._load.port, self._load.key)
            for _ in range(self._load.connections)
        ]
        began = time.monotonic()
        self._until = began + self._load.seconds
        await asyncio.gather(*map(self._publish, connections))
        seconds = time.monotonic() - began
        for connection in connections:
            connection.close()
        return Drained(seconds=seconds, acknowledged=self._published)

    async def _publish(self, connection: KeepAliveConnection) -> None:
        while self._left > 0 and time.monotonic() < self._until:
            self._left -= self._load.batch
            await connection.ask(b"POST", self._path, self._body)
            self._published += self._load.batch


if __name__ == "__main__":
    uvloop.run(Publishers(PublishLoad(**json.loads(sys.argv[1]))).run()).say()
