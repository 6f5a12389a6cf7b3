"""Long answers, produced as fast as their clients read them, in threads of their own.

granian takes every piece of a streamed answer at once, and keeps it until the client reads it:
awaiting `send_bytes` waits for nothing. A file it reads only as fast as the client takes the bytes.
So a long answer is a pipe, which granian opens as a file. A client that reads nothing costs the
pipe, granian's buffers and those of the sockets; after `Bounds.stalled_seconds` its connection is
closed.

A slow client holds a thread, but none of those that serve requests. A sender has few at once, and
so has the process.
"""

import os
import select
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass

from django.db import connections

from config.web.answers import Answering, Head, gathered
from config.web.connection_closer import shut_down
from config.web.request_bodies import Requester
from config.web.threads import Threads
from subscriptions.api.problems import Problem

MOST_AT_ONCE = 32
MOST_OF_SENDER = 4
# While the process stops.
STOPPING_SECONDS = 1.0
_SLICE_SECONDS = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class LongAnswer:
    """An answer whose beginning is known; `close` ends its production in any case."""

    head: Head
    begun: bytes
    rest: Iterator[bytes]
    close: Callable[[], None]


@dataclass(frozen=True, slots=True)
class _Sending:
    request: Answering
    answer: LongAnswer
    client: str


class LongAnswers:
    """Sends the long answers of one process; `send` is for the event loop's thread only."""

    def __init__(self, *, stalled_seconds: float) -> None:
        self._stalled_seconds = stalled_seconds
        self._threads: Threads[_Sending, BaseException | None] = Threads(
            self._send, count=MOST_AT_ONCE, name="answer"
        )
        self._counts: Counter[Requester] = Counter()
        self._stopping = threading.Event()

    def stop(self) -> None:
        """Give up the answers whose clients read nothing."""
        self._stopping.set()

    def close(self) -> None:
        self._threads.close()

    async def send(
        self, request: Answering, answer: LongAnswer, *, sender: Requester, client: str
    ) -> None:
        """Send the answer to its end; raise Problem, 429 or 503, if too many are being sent.

        If the production fails, raise its error, after the connection was closed: half an answer
        must not look complete.
        """
        try:
            with self._place_for(sender):
                error = await self._threads.call(_Sending(request, answer, client))
        except Problem:
            answer.close()
            raise
        if error is not None:
            raise error

    @contextmanager
    def _place_for(self, sender: Requester) -> Iterator[None]:
        if self._counts[sender] >= MOST_OF_SENDER:
            detail = (
                f"{MOST_OF_SENDER} long answers are being sent to you already. Wait until one is "
                "complete, or close its connection."
            )
            raise Problem(429, "too-many-downloads", detail, headers={"Retry-After": "5"})
        if self._counts.total() >= MOST_AT_ONCE:
            detail = "Too many long answers are being sent just now. Repeat the request."
            raise Problem(503, "too-many-downloads", detail, headers={"Retry-After": "5"})
        self._counts[sender] += 1
        try:
            yield
        finally:
            self._counts[sender] -= 1
            if not self._counts[sender]:
                del self._counts[sender]

    def _send(self, sending: _Sending) -> BaseException | None:
        answer = sending.answer
        try:
            with closing(_Pipe(sending.request, answer.head)) as pipe:
                try:
                    self._write(pipe, answer.begun)
                    for piece in gathered(answer.rest):
                        self._write(pipe, piece)
                except BrokenPipeError:
                    # The client has gone.
                    return None
                except BaseException as error:  # noqa: BLE001  # The thread must survive any exception.
                    # Before the pipe is closed, which would be a regular end.
                    shut_down({sending.client})
                    return None if isinstance(error, TimeoutError) else error
        finally:
            answer.close()
            # Answers are rare, so connections go back to the pool.
            connections.close_all()
        return None

    def _write(self, pipe: "_Pipe", piece: bytes) -> None:
        """Write all of it; raise TimeoutError if nothing is taken for too long."""
        left = memoryview(piece)
        taken_at = time.monotonic()
        while left:
            if written := pipe.write(left, seconds=_SLICE_SECONDS):
                left = left[written:]
                taken_at = time.monotonic()
                continue
            seconds = STOPPING_SECONDS if self._stopping.is_set() else self._stalled_seconds
            if time.monotonic() - taken_at >= seconds:
                raise TimeoutError


class _Pipe:
    """A pipe that granian reads as a file."""

    def __init__(self, request: Answering, head: Head) -> None:
        self._reading, self._writing = os.pipe()
        os.set_blocking(self._writing, False)
        self._is_opened = False
        self._poll = select.poll()
        self._poll.register(self._writing, select.POLLOUT)
        request.response_file(head.status, head.headers, f"/dev/fd/{self._reading}")

    def write(self, piece: memoryview, *, seconds: float) -> int:
        """Write what fits, and return its length; 0 if nothing does for so long.

        Raises BrokenPipeError when granian has closed its end.
        """
        if not self._poll.poll(seconds * 1000):
            return 0
        try:
            written = os.write(self._writing, piece)
        except BlockingIOError:
            return 0
        if not self._is_opened and written < len(piece):
            # Full once; when it has room again, granian has opened it.
            self._is_opened = True
        elif self._is_opened and self._reading >= 0:
            self._close_reading()
        return written

    def close(self) -> None:
        self._close_reading()
        os.close(self._writing)

    def _close_reading(self) -> None:
        if self._reading >= 0:
            os.close(self._reading)
            self._reading = -1
