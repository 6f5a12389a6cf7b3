"""Streamed answers, produced as fast as their clients read them, in threads of their own.

granian takes every piece of a streamed answer at once, and keeps it until the client reads it:
awaiting `send_bytes` waits for nothing. A file it reads only as fast as the client takes the bytes.
So a long answer is a pipe, which granian opens as a file. A client that reads nothing costs the
pipe and the buffers of granian and the sockets; after `Bounds.stalled_seconds` the connection is
closed.

A slow client holds a thread, but none of the request threads. Each requester, known or an anonymous
client's origin, has few answers at once; all anonymous clients share a part; and so has the
process. A further answer is refused before the first row is produced.

An answer already in memory is never refused, because the view has done the work: a fetch has leased
messages. Such answers are not sent from here.
"""

import fcntl
import os
import select
import termios
import threading
import time
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from http import HTTPStatus

from django.db import connections

from config.web.answers import PIECE_BYTES, Answering, Head, gathered
from config.web.connection_closer import shut_down
from config.web.request_bodies import Requester
from config.web.threads import Threads
from delivery.incoming.problems import Problem

MOST_AT_ONCE = 32
MOST_OF_REQUESTER = 4
# The others are left to known requesters.
MOST_ANONYMOUS = MOST_AT_ONCE // 4
# Kernel memory held by a client that reads nothing, rounded up to a page.
PIPE_BYTES = 64 * 1024
# While the process stops.
STOPPING_SECONDS = 1.0
_SLICE_SECONDS = 0.5
# granian opens a file within a millisecond.
_OPENING_SLICE_SECONDS = 0.005
_WITHOUT_BODY = (HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED)


@dataclass(slots=True, kw_only=True)
class LongAnswer:
    """An answer that is not produced yet; `close` ends the production in any case."""

    head: Head
    parts: Iterable[bytes]
    close: Callable[[], None]
    # Whether status and headers have been sent.
    is_begun: bool = False


def is_without_body(method: str, head: Head) -> bool:
    return method == "HEAD" or head.status in _WITHOUT_BODY


def is_bounded(head: Head, answered: Iterable[bytes]) -> bool:
    """Return whether a WSGI application's answer is in memory already, or short."""
    length = head.get("content-length") or ""
    # Django's attribute of all responses.
    is_streamed = getattr(answered, "streaming", False)
    return not is_streamed or (length.isdecimal() and int(length) <= PIECE_BYTES)


@dataclass(frozen=True, slots=True)
class _Sending:
    request: Answering
    answer: LongAnswer
    client: str


class LongAnswers:
    """Sends the long answers of a process; `send` is for the event loop's thread only."""

    def __init__(self, *, stalled_seconds: float) -> None:
        self._stalled_seconds = stalled_seconds
        self._threads: Threads[_Sending, None] = Threads(
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
        self, request: Answering, answer: LongAnswer, *, requester: Requester, client: str
    ) -> None:
        """Send the whole answer; raise Problem, 429 or 503, if too many are being sent.

        If the production fails, raise its error. If the answer had begun, the connection was closed
        before: half an answer must not look complete.
        """
        try:
            self._require_place(requester)
        except Problem:
            answer.close()
            raise
        self._counts[requester] += 1
        try:
            await self._threads.call(_Sending(request, answer, client))
        finally:
            self._counts[requester] -= 1
            self._counts += Counter()  # Drop requesters without answers.

    def _require_place(self, requester: Requester) -> None:
        if self._counts[requester] >= MOST_OF_REQUESTER:
            detail = (
                f"{MOST_OF_REQUESTER} long answers are being sent to you already. Wait until one "
                "is complete, or close its connection."
            )
            raise Problem(429, "too-many-downloads", detail, headers={"Retry-After": "5"})
        if not self._has_place(requester):
            detail = "Too many long answers are being sent just now. Repeat the request."
            raise Problem(503, "too-many-downloads", detail, headers={"Retry-After": "5"})

    def _has_place(self, requester: Requester) -> bool:
        if self._counts.total() >= MOST_AT_ONCE:
            return False
        anonymous = sum(count for other, count in self._counts.items() if not other.is_known)
        return requester.is_known or anonymous < MOST_ANONYMOUS

    def _send(self, sending: _Sending) -> None:
        answer = sending.answer
        try:
            pieces = gathered(answer.parts)
            first = next(pieces, b"")
            if len(first) < PIECE_BYTES:
                answer.is_begun = True
                sending.request.response_bytes(answer.head.status, answer.head.headers, first)
            else:
                self._send_pieces(sending, first, pieces)
        finally:
            try:
                answer.close()
            finally:
                # Answers are rare, so connections go back to the pool.
                connections.close_all()

    def _send_pieces(self, sending: _Sending, first: bytes, pieces: Iterator[bytes]) -> None:
        with closing(_Pipe(sending.request, sending.answer.head)) as pipe:
            sending.answer.is_begun = True
            try:
                self._write(pipe, first)
                for piece in pieces:
                    self._write(pipe, piece)
                self._wait_until_opened(pipe)
            except BrokenPipeError:
                # The client has gone.
                return
            except BaseException as error:
                # Before the pipe is closed, which would be a regular end.
                self._shut_down(sending.client)
                if not isinstance(error, TimeoutError):
                    raise

    def _write(self, pipe: "_Pipe", piece: bytes) -> None:
        """Write all of it; raise TimeoutError if nothing is taken for too long."""
        left = memoryview(piece)
        taken_at = time.monotonic()
        while left:
            if written := pipe.write(left, seconds=_SLICE_SECONDS):
                left = left[written:]
                taken_at = time.monotonic()
            elif self._is_too_late(taken_at):
                raise TimeoutError

    def _wait_until_opened(self, pipe: "_Pipe") -> None:
        written_at = time.monotonic()
        while not pipe.is_opened():
            if self._is_too_late(written_at):
                raise TimeoutError
            time.sleep(_OPENING_SLICE_SECONDS)

    def _is_too_late(self, since: float) -> bool:
        seconds = STOPPING_SECONDS if self._stopping.is_set() else self._stalled_seconds
        return time.monotonic() - since >= seconds

    def _shut_down(self, client: str) -> None:
        """Shut the connection down; while no descriptor is free to search it with, try again."""
        while True:
            try:
                return shut_down({client})
            except OSError:
                if self._stopping.wait(_SLICE_SECONDS):
                    raise


class _Pipe:
    """A pipe opened as a file by granian.

    The file's name is the number of the reading end. While granian has not opened it, the reading
    end stays open: the number would be free for another client's pipe. When bytes have been taken,
    granian has opened it, whatever the size of the pipe.
    """

    def __init__(self, request: Answering, head: Head) -> None:
        self._reading, self._writing = os.pipe()
        self._written = 0
        try:
            os.set_blocking(self._writing, False)
            _set_size(self._writing)
            self._poll = select.poll()
            self._poll.register(self._writing, select.POLLOUT)
            request.response_file(head.status, head.headers, f"/dev/fd/{self._reading}")
        except BaseException:
            self.close()
            raise

    def write(self, piece: memoryview, *, seconds: float) -> int:
        """Write what fits, and return the length; 0 if nothing does for so long.

        Raises BrokenPipeError when granian has closed the pipe.
        """
        if not self._poll.poll(seconds * 1000):
            return 0
        self.is_opened()
        try:
            written = os.write(self._writing, piece)
        except BlockingIOError:
            return 0
        self._written += written
        return written

    def is_opened(self) -> bool:
        """Return whether granian has opened it; if so, only granian holds the reading end."""
        if self._reading >= 0 and self._unread() < self._written:
            self._close_reading()
        return self._reading < 0

    def close(self) -> None:
        self._close_reading()
        os.close(self._writing)

    def _unread(self) -> int:
        count = array("i", [0])
        fcntl.ioctl(self._reading, termios.FIONREAD, count)
        return count[0]

    def _close_reading(self) -> None:
        if self._reading >= 0:
            os.close(self._reading)
            self._reading = -1


def _set_size(descriptor: int) -> None:
    # Linux only, where pages of 64 KiB make a pipe of 1 MiB. A user's limit may forbid it.
    with suppress(AttributeError, OSError):
        fcntl.fcntl(descriptor, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
