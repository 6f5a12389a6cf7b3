"""A firewall between a product and its database that forgets connections.

It resets a forgotten connection when more data comes.
"""

import asyncio
import socket
import struct
import threading
from collections.abc import Coroutine
from types import TracebackType
from typing import Any, Self

from tests.support.ports import close_port

PIECE = 65_536


class Firewall:
    """Forwards all traffic, on a port of its own.

    A forgotten connection is reset on the product's side, and the database is not notified: its
    session, with all locks, lasts until the database itself ends it.
    """

    def __init__(self, host: str, port: int) -> None:
        self._database = (host, port)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="firewall", daemon=True)
        self._known: set[asyncio.StreamWriter] = set()
        # Of all connections, to both sides.
        self._writers: list[asyncio.StreamWriter] = []
        self.port = 0

    def __enter__(self) -> Self:
        self._thread.start()
        self.port = self._run(self._listen())
        return self

    def __exit__(
        self,
        _type: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self._run(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def reset_all(self) -> int:
        """Forget all connections, and return their number."""
        return self._run(self._reset())

    def _run(self, coroutine: Coroutine[Any, Any, int]) -> int:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(timeout=30)

    async def _listen(self) -> int:
        self._server = await asyncio.start_server(self._connect, "127.0.0.1", 0)
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.append(writer)
        try:
            answers, database = await asyncio.open_connection(*self._database)
        except OSError:
            writer.close()
            return
        self._writers.append(database)
        self._known.add(writer)
        await asyncio.gather(
            self._pump(reader, database, of=writer), self._pump(answers, writer, of=writer)
        )
        self._known.discard(writer)

    async def _pump(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        *,
        of: asyncio.StreamWriter,
    ) -> None:
        try:
            while piece := await reader.read(PIECE):
                writer.write(piece)
                await writer.drain()
        except OSError:
            pass
        if of in self._known:
            writer.close()

    async def _reset(self) -> int:
        known, self._known = self._known, set()
        for writer in known:
            link: socket.socket = writer.get_extra_info("socket")
            # Closed with a linger time of zero, the socket sends RST.
            link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()
        return len(known)

    async def _close(self) -> int:
        await close_port(self._server)
        # A connection that was just accepted begins.
        await asyncio.sleep(0)
        rest = asyncio.all_tasks() - {asyncio.current_task()}
        for task in rest:
            task.cancel()
        await asyncio.gather(*rest, return_exceptions=True)
        for writer in self._writers:
            writer.transport.abort()
        # An aborted transport closes its socket in the next round of the loop.
        await asyncio.sleep(0)
        return 0
