"""The receiver of the benchmark: answers 200 as fast as Python can, and records the requests.

It is a separate process, `python -m tests.bench.receiver`, which prints the port. It parses as
little of a request as possible: bare loops use it too, and the cost reduces both rates. Requests on
`/hang/…` get no answer, and those on `/any/…` may come in any order, with any query string.
"""

import asyncio
import json
import resource
import time
from collections import Counter, defaultdict
from typing import Any, cast

import uvloop

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
TALLY = "/tally"
COUNT = "/count"
ARRIVALS = "/arrivals"
CLIENTS = "/clients"
HANG = "/hang/"
UNORDERED = "/any/"
# 5,000 lanes connect at the same moment.
BACKLOG = 8192

_LENGTH = b"\r\nContent-Length: "
_UNORDERED = UNORDERED.encode()
_ID = b"\r\nwebhook-id: msg_"


class Tally:
    """The requests since the last reset; ids grow in the order of publication."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self.requests = 0
        self.hanging = 0
        self.first_at = 0.0
        self.last_at = 0.0
        self.ids: defaultdict[bytes, list[int]] = defaultdict(list)
        # The message's id of each request, 0 if it has none, and the moment on the monotonic clock.
        self.arrivals: list[tuple[int, float]] = []
        # The requests of each client, by the port of the connection.
        self.clients: Counter[int] = Counter()

    def count(self, path: bytes, head: bytes, *, client: int) -> None:
        self.last_at = time.monotonic()
        if not self.requests:
            self.first_at = self.last_at
        self.requests += 1
        at = head.find(_ID)
        id = int(head[at + len(_ID) : head.index(b"\r", at + 2)]) if at >= 0 else 0
        self.arrivals.append((id, self.last_at))
        self.clients[client] += 1
        if at >= 0:
            self.ids[path.partition(b"?")[0]].append(id)

    def as_json(self) -> dict[str, Any]:
        """`got` counts deliveries received at least once, `duplicated` the further requests."""
        got = sum(len(set(ids)) for ids in self.ids.values())
        return {
            "requests": self.requests,
            "hanging": self.hanging,
            "seconds": self.last_at - self.first_at,
            "got": got,
            "duplicated": sum(map(len, self.ids.values())) - got,
            "out_of_order": sum(
                out_of_order(ids)
                for path, ids in self.ids.items()
                if not path.startswith(_UNORDERED)
            ),
        }


def out_of_order(ids: list[int]) -> int:
    """Return how many ids came for the first time after a later id."""
    seen: set[int] = set()
    latest = wrong = 0
    for id in ids:
        wrong += id < latest and id not in seen
        latest = max(latest, id)
        seen.add(id)
    return wrong


class ReceivingConnection(asyncio.Protocol):
    """A connection of a client which sends the next request only after an answer."""

    def __init__(self, tally: Tally) -> None:
        self._tally = tally
        self._buffer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are no subclasses of asyncio's.
        self._transport = cast("asyncio.Transport", transport)
        self._client: int = transport.get_extra_info("peername")[1]

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            return
        head = self._buffer[: end + 2]
        at = head.find(_LENGTH) + len(_LENGTH)
        length = int(head[at : head.index(b"\r", at)]) if at >= len(_LENGTH) else 0
        if len(self._buffer) >= end + 4 + length:
            self._buffer = b""
            self._take(head)

    def _take(self, head: bytes) -> None:
        path = head.split(b" ", 2)[1]
        if path == TALLY.encode():
            self._say(self._tally.as_json())
        elif path == COUNT.encode():
            self._say({"requests": self._tally.requests})
            if head.startswith(b"DELETE"):
                self._tally.reset()
        elif path == ARRIVALS.encode():
            self._say(self._tally.arrivals)
        elif path == CLIENTS.encode():
            self._say(self._tally.clients)
        elif path.startswith(HANG.encode()):
            self._tally.hanging += 1
        else:
            self._tally.count(path, head, client=self._client)
            self._transport.write(ANSWER)

    def _say(self, what: object) -> None:
        body = json.dumps(what).encode()
        self._transport.write(
            b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
        )


async def serve() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    tally = Tally()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(
        lambda: ReceivingConnection(tally), "127.0.0.1", 0, backlog=BACKLOG
    )
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(serve())
