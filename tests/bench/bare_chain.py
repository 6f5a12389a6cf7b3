"""The bare chain to compare the latency with: a message's steps, and nothing else.

    publisher ─▶ server ── stores, notifies ──▶ sender ── reads, records, posts ──▶ receiver

It is two processes, as in the product: `python -m tests.bench.bare_chain server SUBSCRIBERS` prints
the port, and `… sender URL SUBSCRIBERS` posts each message to so many paths, on a kept connection
each. There are three commits, as in the product, each of a prepared statement: the message with its
deliveries and the notification, before the answer; the deliveries under way, before they are sent;
the outcomes. Keys, matching, lanes, signatures, policies and faults are left out.
"""

import asyncio
import sys
from collections.abc import Sequence
from typing import cast
from urllib.parse import urlsplit

import django
import uvloop

from tests.bench.bare_publish import TABLES
from tests.bench.keepalive import KeepAliveConnection, open_connection

CHANNEL = "bench_chain"
STORE = f"""
    WITH message AS (
        INSERT INTO bench_message (headers, body)
        VALUES ('{{"content-type": "application/json"}}', %s)
        RETURNING id
    ), deliveries AS (
        INSERT INTO bench_delivery (message_id, subscription_id, status)
        SELECT message.id, subscription, 'PENDING'
        FROM message, unnest(%s::bigint[]) AS subscription
    )
    SELECT id, pg_notify('{CHANNEL}', id::text) FROM message
"""  # noqa: S608 - the channel is a constant
READ = """
    SELECT delivery.id, delivery.subscription_id, message.body
    FROM bench_delivery delivery JOIN bench_message message ON message.id = delivery.message_id
    WHERE delivery.message_id = %s
    ORDER BY delivery.id
"""
RECORD = "UPDATE bench_delivery SET status = %s WHERE message_id = %s"


class ServedConnection(asyncio.Protocol):
    """A connection of a publisher posting messages in turn."""

    def __init__(self, server: "ChainServer") -> None:
        self._server = server
        self._buffer = b""
        self._task: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are no subclasses of asyncio's.
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head, end, body = self._buffer.partition(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r")[0] or 0)
        if end and len(body) >= length:
            self._buffer = b""
            self._task = asyncio.create_task(self._answer(body))

    async def _answer(self, body: bytes) -> None:
        answer = b'{"id":"msg_%d"}' % await self._server.store(body)
        self._transport.write(
            b"HTTP/1.1 202 Accepted\r\nContent-Length: %d\r\n\r\n%s" % (len(answer), answer)
        )


class ChainServer:
    """Accepts messages for so many subscribers, numbered from 0."""

    def __init__(self, subscribers: int) -> None:
        self._subscribers = list(range(subscribers))
        self._turn = asyncio.Lock()

    async def serve(self) -> None:
        from delivery.database.connections import connect_sender

        self._connection = await connect_sender("inturn bench")
        await self._connection.execute(TABLES, prepare=False)
        server = await asyncio.get_running_loop().create_server(
            lambda: ServedConnection(self), "127.0.0.1", 0
        )
        print(server.sockets[0].getsockname()[1], flush=True)
        await server.serve_forever()

    async def store(self, body: bytes) -> int:
        """Store a message, and return the id once it is on disk."""
        async with self._turn:
            cursor = await self._connection.execute(STORE, (body, self._subscribers), binary=True)
            ((id, _),) = await cursor.fetchall()
            return int(id)


async def send(url: str, subscribers: int) -> None:
    """Send the notified messages, until the process ends."""
    from delivery.database.connections import connect_sender

    port = urlsplit(url).port or 0
    receivers = [await open_connection(port, "bare") for _ in range(subscribers)]
    listener = await connect_sender("inturn bench")
    connection = await connect_sender("inturn bench")
    await listener.execute(f"LISTEN {CHANNEL}")
    print(port, flush=True)
    async for notification in listener.notifies():
        id = int(notification.payload)
        cursor = await connection.execute(READ, (id,), binary=True)
        rows = await cursor.fetchall()
        await connection.execute(RECORD, ("UNDER WAY", id))
        await _post(receivers, id, rows)
        await connection.execute(RECORD, ("DELIVERED", id))


async def _post(
    receivers: Sequence[KeepAliveConnection], id: int, rows: Sequence[tuple[int, int, bytes]]
) -> None:
    headers = b"webhook-id: msg_%d\r\n" % id
    await asyncio.gather(
        *(
            receivers[place].ask(b"POST", b"/any/%d" % place, body, headers=headers)
            for _, place, body in rows
        )
    )


if __name__ == "__main__":
    django.setup()
    match sys.argv[1:]:
        case ["server", subscribers]:
            uvloop.run(ChainServer(int(subscribers)).serve())
        case ["sender", url, subscribers]:
            uvloop.run(send(url, int(subscribers)))
