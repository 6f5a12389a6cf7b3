"""Answers sent late or never: a built-in receiver is slow, hangs or closes.

While an answer waits it is an entry on the event loop, and holds no thread. A process has room for
a number of them; a further request is answered at once, with 503.
"""

import asyncio
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Protocol

from config.web.answers import Answering, Header
from config.web.connection_closer import shut_down
from delivery.receivers.late_answers import CLOSE

MOST_POSTPONED = 100
# A header is a text; only Inturn itself writes this header.
_LONGEST_SECONDS = 300.0


class Disconnecting(Answering, Protocol):
    """A request whose client may disconnect while the answer waits."""

    def client_disconnect(self) -> Awaitable[None]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Postponed:
    """An answer with the value of AFTER_HEADER: a number of seconds, or CLOSE."""

    after: str
    status: int
    headers: list[Header]
    body: bytes


class PostponedAnswers:
    """The waiting answers of a process; for the event loop's thread only."""

    def __init__(self, *, most: int = MOST_POSTPONED) -> None:
        self._most = most
        self._count = 0
        self._stopped = asyncio.Event()

    def stop(self) -> None:
        """Send all waiting answers now."""
        self._stopped.set()

    async def send(self, request: Disconnecting, answer: Postponed, *, client: str) -> None:
        """Wait, then send the answer; or close the connection with this client instead."""
        if answer.after == CLOSE:
            await asyncio.get_running_loop().run_in_executor(None, shut_down, {client})
            return
        if self._count >= self._most:
            request.response_bytes(503, [("Retry-After", "5")], b"Too many answers wait already.\n")
            return
        self._count += 1
        try:
            if await self._is_due(request, min(float(answer.after), _LONGEST_SECONDS)):
                request.response_bytes(answer.status, answer.headers, answer.body)
        finally:
            self._count -= 1

    async def _is_due(self, request: Disconnecting, seconds: float) -> bool:
        """Wait so long, or until Inturn stops; return False if the client has disconnected."""
        gone = asyncio.ensure_future(request.client_disconnect())
        stopped = asyncio.ensure_future(self._stopped.wait())
        try:
            await asyncio.wait(
                [gone, stopped], timeout=seconds, return_when=asyncio.FIRST_COMPLETED
            )
            return not gone.done()
        finally:
            gone.cancel()
            stopped.cancel()
