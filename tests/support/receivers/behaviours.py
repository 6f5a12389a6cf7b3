"""The behaviours of a receiver, by instruction."""

import asyncio
import contextlib
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from aiohttp import web

LONG_ANSWER_BYTES = 1_000_000


class Behaviour(Protocol):
    @property
    def status(self) -> int | None:
        """The final status code; None if there is no answer, or an incomplete answer."""

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse: ...


@dataclass(frozen=True, slots=True)
class Answer:
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""

    async def answer(self, _request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(status=self.status, headers=self.headers, body=self.body)


OK = Answer()


class Hold:
    """Answers only once released; an unreleased sender hangs until the time-out."""

    def __init__(self, then: Behaviour = OK) -> None:
        self._then = then
        self._released = threading.Event()

    @property
    def status(self) -> int | None:
        return self._then.status if self._released.is_set() else None

    def release(self) -> None:
        self._released.set()

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        while not self._released.is_set() and request.transport is not None:
            await asyncio.sleep(0.005)
        return await self._then.answer(request)


@dataclass(frozen=True, slots=True)
class Slow:
    """Answers after a delay."""

    seconds: float
    then: Answer = OK

    @property
    def status(self) -> int:
        return self.then.status

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        await asyncio.sleep(self.seconds)
        return await self.then.answer(request)


@dataclass(frozen=True, slots=True)
class Close:
    """Closes the connection without an answer."""

    status: None = None

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.transport is not None:
            request.transport.abort()
        return web.Response()


@dataclass(frozen=True, slots=True)
class Drip:
    """Announces a long answer and sends a byte per second."""

    status: None = None

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Length": str(LONG_ANSWER_BYTES)})
        await response.prepare(request)
        with contextlib.suppress(ConnectionError):
            while request.transport is not None:
                await response.write(b".")
                await asyncio.sleep(1)
        return response


@dataclass(frozen=True, slots=True)
class Stream:
    """Answers with this status and an endless body."""

    status: int = 200

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse(status=self.status)
        await response.prepare(request)
        with contextlib.suppress(ConnectionError):
            while request.transport is not None:
                await response.write(b"." * 65_536)
        return response
