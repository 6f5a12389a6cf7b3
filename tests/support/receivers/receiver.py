"""An HTTP server in a thread of the test's process, on a fixed port."""

import asyncio
import socket
import threading
from collections.abc import Coroutine
from types import TracebackType
from typing import Any, Self

from aiohttp import web

from tests.support.ports import close_port
from tests.support.receivers.endpoint import ReceiverEndpoint


class Receiver:
    """Serves any number of endpoints; all can be made unreachable and reachable again."""

    def __init__(self) -> None:
        # Bound but never listening: reserves the port while nothing listens on it.
        self._reserved = _bound(0)
        self.port: int = self._reserved.getsockname()[1]
        self._endpoints: dict[str, ReceiverEndpoint] = {}
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="receiver", daemon=True)
        self._server: web.Server | None = None
        self._listener: asyncio.Server | None = None

    def __enter__(self) -> Self:
        self._thread.start()
        self.accept_connections()
        return self

    def __exit__(
        self,
        _type: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self.refuse_connections()
        self._run(_cancel_the_rest())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        self._reserved.close()

    def endpoint(self, name: str) -> ReceiverEndpoint:
        """Return the endpoint of the name, created on first use."""
        url = f"http://127.0.0.1:{self.port}/{name}"
        return self._endpoints.setdefault(f"/{name}", ReceiverEndpoint(url))

    def refuse_connections(self) -> None:
        """Close every connection and the port: new connections are refused at once."""
        self._run(self._close())

    def accept_connections(self) -> None:
        self._run(self._open())

    def _run(self, coroutine: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(timeout=30)

    async def _open(self) -> None:
        if self._listener is None:
            self._server = web.Server(self._answer, access_log=None)
            self._listener = await self._loop.create_server(
                self._server, sock=_bound(self.port), backlog=1024
            )

    async def _close(self) -> None:
        if self._listener is not None and self._server is not None:
            await close_port(self._listener)
            transports = [handler.transport for handler in self._server.connections]
            # Not 0, which means no time-out.
            await self._server.shutdown(timeout=0.01)
            for transport in transports:
                # A closing connection waits until the client has read everything, which may be
                # never.
                if transport is not None:
                    transport.abort()
            await self._listener.wait_closed()
        self._listener = self._server = None

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        # Before the body: a disconnected client has no port any more.
        port = request.transport.get_extra_info("peername")[1] if request.transport else 0
        body = await request.read()
        endpoint = self._endpoints.get(request.path)
        if endpoint is None:
            return web.Response(status=404, text=f"nobody listens on {request.path}")
        behaviour = endpoint.take(
            request.method, request.path_qs, request.headers.copy(), body, port=port
        )
        return await behaviour.answer(request)


def _bound(port: int) -> socket.socket:
    bound = socket.socket()
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    bound.bind(("127.0.0.1", port))
    return bound


async def _cancel_the_rest() -> None:
    rest = asyncio.all_tasks() - {asyncio.current_task()}
    for task in rest:
        task.cancel()
    await asyncio.gather(*rest, return_exceptions=True)
