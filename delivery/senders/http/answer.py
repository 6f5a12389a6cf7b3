"""Reading an answer from a connection: the header, and as much of the body as is wanted."""

import asyncio
from enum import Enum, auto

from delivery.outcome import EXCERPT_BYTES, MAX_INFORMATIONAL, REQUEST_TIMEOUT
from delivery.senders.http.body import Body
from delivery.senders.http.framing import (
    BLANK_LINES,
    BROKEN_OFF,
    END_OF_HEADER,
    LATE,
    MAX_HEADER_BYTES,
    SURPLUS,
    AnswerHead,
    cannot_begin_answer,
    parse_head,
    parse_later_head,
)
from delivery.senders.http.stream import AnswerStream, ConnectionEndedError

# How long an early answer waits for another answer, once the request is written.
EARLY_SECONDS = 2.0
_STRAYS = frozenset({BLANK_LINES, LATE, SURPLUS})
_NOT_HTTP = "its answer is not HTTP"
_TOO_LONG = f"it sent more than {MAX_HEADER_BYTES // 1024} KiB before an answer"
_TOO_MANY = f"it sent more than {MAX_INFORMATIONAL} informational answers (1xx)"


class UnreadableAnswerError(Exception):
    """The receiver sends something, but no answer: the message says why."""

    def __init__(self, words: str, received: bytes | bytearray) -> None:
        super().__init__(words)
        self.excerpt = bytes(received[:EXCERPT_BYTES])


class BodyEnd(Enum):
    """How the reading of a body ended.

    WHOLE: all of it was read. CUT: the caller's limit was reached. OVERDUE: the exchange's time is
    over. BROKEN: the connection ended before it. UNUSABLE: nobody can tell which bytes are the
    body.
    """

    WHOLE = auto()
    CUT = auto()
    OVERDUE = auto()
    BROKEN = auto()
    UNUSABLE = auto()


class BegunAnswer:
    """An answer whose header is complete; its body may not have arrived yet."""

    __slots__ = ("_body", "_oddities", "_stream", "head")

    def __init__(self, stream: AnswerStream, head: AnswerHead, oddities: tuple[str, ...]) -> None:
        self.head = head
        self._stream = stream
        self._body = Body(head)
        self._oddities = oddities + head.oddities

    @property
    def status(self) -> int:
        return self.head.status

    @property
    def note(self) -> str:
        """The faults of form in the part of the answer that was read, in words; empty if none."""
        if not self._oddities:
            return ""
        return f"its answer is malformed: {', '.join(dict.fromkeys(self._oddities))}"

    def add(self, oddity: str) -> None:
        """Note a fault of form."""
        self._oddities += (oddity,)

    @property
    def is_tidy(self) -> bool:
        """True if the whole answer was read, and the next answer will begin where it ends."""
        return (
            self._body.is_over
            and self.head.keeps
            and not self._oddities
            and not self._stream.received
        )

    @property
    def has_strays(self) -> bool:
        """True if bytes came that belong to no answer."""
        return bool(self._oddities) and not _STRAYS.isdisjoint(self._oddities)

    @property
    def has_usable_body(self) -> bool:
        """False if nobody can tell which of the bytes after the header are the body."""
        return self._body.is_usable

    @property
    def has_announced_end(self) -> bool:
        """True if the header says where the body ends."""
        return self._body.is_usable and not self._body.lasts_until_closed

    async def read(self, most_bytes: int, *, seconds: float | None = None) -> tuple[bytes, BodyEnd]:
        """Return the beginning of the body, up to so many bytes, and how the reading ended.

        Waits for no more than these bytes, and for so many seconds. Raises nothing. The bytes of an
        unusable body are returned as well: a person may want to see them.
        """
        body = self._body
        body.take(self._stream.received, most_bytes)
        end = BodyEnd.WHOLE if body.is_over else await self._read_on(most_bytes, seconds)
        if not body.is_usable:
            self._oddities += body.oddities
            end = BodyEnd.UNUSABLE
        elif body.is_over and self._stream.received:
            self._oddities += (SURPLUS,)
        if body.is_usable and len(body.content) > most_bytes:
            end = BodyEnd.CUT
        return bytes(body.content[:most_bytes]), end

    async def _read_on(self, most_bytes: int, seconds: float | None) -> BodyEnd:
        body, stream = self._body, self._stream
        try:
            async with asyncio.timeout(seconds):
                while body.wants_more(most_bytes):
                    if not await stream.more():
                        return self._ended_by(stream.failure)
                    body.take(stream.received, most_bytes)
        except TimeoutError:
            return BodyEnd.CUT
        return BodyEnd.WHOLE if body.is_over else BodyEnd.CUT

    def _ended_by(self, failure: BaseException | None) -> BodyEnd:
        if isinstance(failure, TimeoutError):
            return BodyEnd.OVERDUE
        if self._body.lasts_until_closed and isinstance(failure, ConnectionEndedError):
            return BodyEnd.WHOLE
        if self._body.is_usable and not self._body.lasts_until_closed:
            self._oddities += (BROKEN_OFF,)
        return BodyEnd.BROKEN


async def begin_answer(stream: AnswerStream) -> BegunAnswer:
    """Wait for the header of the answer, and skip informational answers before it.

    Raises UnreadableAnswerError, or the reason why the connection ended.
    """
    answer = await _next_answer(stream)
    while stream.is_early and (later := await _later(stream, answer)) is not None:
        answer = later
    return answer


async def _next_answer(stream: AnswerStream) -> BegunAnswer:
    """Return the next answer on the connection; what was sent in its place is an error's cause."""
    late = bytearray()
    try:
        answer = await _after_late_bytes(stream, late)
    except (OSError, UnreadableAnswerError) as error:
        if not late and not (stream.is_used and cannot_begin_answer(stream.received, 0)):
            raise
        stream.mark_untidy()
        raise error from UnreadableAnswerError(LATE, late + stream.received)
    if answer.status == REQUEST_TIMEOUT and stream.is_used and not answer.head.keeps:
        raise ConnectionEndedError
    return answer


async def _after_late_bytes(stream: AnswerStream, late: bytearray) -> BegunAnswer:
    informational = header_bytes = 0
    oddities: tuple[str, ...] = ()
    while True:
        received = await _take_header(stream, most_bytes=MAX_HEADER_BYTES - header_bytes)
        header_bytes += len(received)
        head = parse_head(received)
        if head is None:
            if not stream.is_used:
                raise UnreadableAnswerError(_NOT_HTTP, received)
            stream.mark_untidy()
            late += received
            oddities, head = (LATE,), parse_later_head(received)
        if head is None:
            continue
        if not head.is_informational:
            return BegunAnswer(stream, head, oddities)
        oddities += head.oddities
        informational += 1
        if informational > MAX_INFORMATIONAL:
            raise UnreadableAnswerError(_TOO_MANY, received)


async def _later(stream: AnswerStream, early: BegunAnswer) -> BegunAnswer | None:
    """Return the answer that follows an early answer; None if none does.

    A receiver may answer before it has read the request, and it may have answered the request
    before twice. So another answer has until shortly after the request is written.
    """
    stream.is_early = False
    await early.read(MAX_HEADER_BYTES, seconds=EARLY_SECONDS)
    while early.head.keeps:
        try:
            async with asyncio.timeout(EARLY_SECONDS):
                later = await _next_answer(stream)
        except TimeoutError:
            if stream.failure is not None or not stream.is_writing:
                break
        except (OSError, UnreadableAnswerError):
            break
        else:
            later.add(LATE)
            return later
    return None


async def _take_header(stream: AnswerStream, *, most_bytes: int) -> bytes:
    """Take the received bytes up to a blank line; blank lines at their begin do not count."""
    received, begin, searched = stream.received, 0, 0
    # On a used connection, late bytes may come before it.
    may_begin = stream.is_used
    while True:
        while received.startswith((b"\r", b"\n"), begin):
            begin += 1
        end = END_OF_HEADER.search(received, max(begin, searched))
        if end is not None and end.end() <= most_bytes:
            header = bytes(received[: end.end()])
            del received[: end.end()]
            return header
        if len(received) > most_bytes:
            raise UnreadableAnswerError(_TOO_LONG, received)
        if not may_begin:
            if cannot_begin_answer(received, begin):
                raise UnreadableAnswerError(_NOT_HTTP, received)
            may_begin = received.find(b"\n", begin) >= 0
        searched = len(received) - 2
        if not await stream.more():
            assert stream.failure is not None
            raise stream.failure
