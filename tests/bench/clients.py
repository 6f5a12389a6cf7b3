"""Clients of a mailbox: each fetches and acknowledges batches over a keep-alive connection.

It is a separate process, `python -m tests.bench.clients`, with a MailboxPlan as JSON. It does as
little as possible with a message: the cost reduces the web server's share of the same machine.
"""

import asyncio
import json
import sys
import time
from dataclasses import dataclass

import orjson
import uvloop

from tests.bench.drained import Drained
from tests.bench.keepalive import KeepAliveConnection, open_connection
from tests.bench.receiver import out_of_order

# Longer than any round: a message twice is a fault.
VISIBILITY_SECONDS = 600


@dataclass(frozen=True, slots=True, kw_only=True)
class MailboxPlan:
    """So many messages in total, in batches, by so many clients of a web server on this machine."""

    port: int
    mailbox: str
    key: str
    clients: int
    batch: int
    messages: int


class MailboxClients:
    """`left` is the number of messages neither fetched nor about to be fetched by a client."""

    def __init__(self, plan: MailboxPlan) -> None:
        self._plan = plan
        self._left = plan.messages
        self._path = f"/api/v1/mailboxes/{plan.mailbox}".encode()
        self._batches: list[list[int]] = []
        self._acknowledged = 0

    async def run(self) -> Drained:
        """Drain until all messages are fetched, or no more come."""
        connections = [
            await open_connection(self._plan.port, self._plan.key)
            for _ in range(self._plan.clients)
        ]
        # A warm server has all threads and imported code.
        await asyncio.gather(
            *(client.ask(b"GET", self._path + b"/status") for client in connections)
        )
        began = time.monotonic()
        await asyncio.gather(*map(self._drain, connections))
        seconds = time.monotonic() - began
        for connection in connections:
            connection.close()
        return self._drained(seconds)

    async def _drain(self, connection: KeepAliveConnection) -> None:
        while share := min(self._plan.batch, self._left):
            self._left -= share
            receipts = await self._fetch(connection, share)
            # Other clients may have been quicker: then there are fewer than requested.
            self._left += share - len(receipts)
            if not receipts:
                return
            await self._acknowledge(connection, receipts)

    async def _fetch(self, connection: KeepAliveConnection, most: int) -> list[str]:
        query = b"/next?max=%d&wait=1&visibility=%d" % (most, VISIBILITY_SECONDS)
        answer = await connection.ask(b"POST", self._path + query)
        messages = orjson.loads(answer)["messages"] if answer else []
        self._batches.append([int(message["id"].removeprefix("msg_")) for message in messages])
        return [message["receipt"] for message in messages]

    async def _acknowledge(self, connection: KeepAliveConnection, receipts: list[str]) -> None:
        answer = await connection.ask(
            b"POST", self._path + b"/ack", orjson.dumps({"receipts": receipts})
        )
        self._acknowledged += sum(result["ok"] for result in orjson.loads(answer)["results"])

    def _drained(self, seconds: float) -> Drained:
        got = len({id for batch in self._batches for id in batch})
        return Drained(
            seconds=seconds,
            acknowledged=self._acknowledged,
            got=got,
            duplicated=sum(map(len, self._batches)) - got,
            out_of_order=sum(map(out_of_order, self._batches)),
        )


if __name__ == "__main__":
    uvloop.run(MailboxClients(MailboxPlan(**json.loads(sys.argv[1]))).run()).say()
