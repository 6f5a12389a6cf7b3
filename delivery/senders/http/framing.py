"""The form of an answer: its status line, its header, and how its body is framed.

A readable status line and a complete header are an answer, whatever is malformed in them or comes
after them: the receiver has judged the message, and must not get it again because it frames its
answer badly. The oddities say what is malformed, in words for a person. The connection of such an
answer is not used again, because nobody knows where the next answer begins.

No answer is: bytes without a status line of HTTP (`HTTP/`, a version, three digits), a header
without a blank line after it, and a header of more than 64 KiB.
"""

import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

# The limit for informational answers and the answer's header together.
MAX_HEADER_BYTES = 64 * 1024

SURPLUS = "bytes after its end"
BROKEN_OFF = "a body that ends early"
LATE = "late bytes of an earlier answer before it"
BLANK_LINES = "blank lines before it"
_ODD_LINE = "an odd status line"
_ODD_LENGTH = "an invalid Content-Length"
_ODD_CODING = "an unknown Transfer-Encoding"

END_OF_HEADER = re.compile(rb"\n\r?\n")
# All repetitions are possessive: a receiver must not choose how long a match takes.
_STATUS_LINE = re.compile(rb"HTTP/\d++(?:\.\d++)?[ \t]++(\d{3})(?!\d)", re.IGNORECASE)
_NAME = rb"[!#-'*+.0-9A-Z^-z|~-]"
_TEXT = rb"[^\0-\x08\x0a-\x1f\x7f]"
_FIELD = _NAME + rb"++:" + _TEXT + rb"*+\r?"
_TIDY = re.compile(
    rb"HTTP/1\.[01] (\d{3})(?: " + _TEXT + rb"*+)?\r?\n(?:" + _FIELD + rb"\n)*+\r?\n"
)
_TIDY_FIELD = re.compile(_FIELD)
_TIDY_LINE = re.compile(rb"HTTP/1\.[01] [1-9]\d\d(?: " + _TEXT + rb"*+)?\r?")
_FRAMING_FIELD = re.compile(
    rb"\n(content-length|transfer-encoding|connection)[ \t]*+:[ \t]*+([^\r\n]*+)", re.IGNORECASE
)
_FOLD = re.compile(rb"\r?\n[ \t]++")
_ODD_FIELDS = (
    (re.compile(rb"\n[^:\n]++(?=\n)"), "a header line without a colon"),
    (
        re.compile(rb"\n(?:" + _NAME + rb"*+[^\n:!#-'*+.0-9A-Z^-z|~-][^:\n]*+)?+:"),
        "an invalid header name",
    ),
    (
        re.compile(rb"[\0-\x08\x0b\x0c\x0e-\x1f\x7f]|\r(?!\n)"),
        "a control character in its header",
    ),
)
_LENGTH = re.compile(rb"[0-9]{1,18}")


# How the end of a body is found; UNKNOWN: nobody can tell. Texts, because a look at a member of an
# Enum takes 0.15 µs.
Framing = Literal["EMPTY", "LENGTH", "CHUNKED", "UNTIL_CLOSED", "UNKNOWN"]


class AnswerHead(NamedTuple):
    """Status line and header of an answer; `keeps`: the connection may be used again."""

    status: int
    lines: bytes
    framing: Framing
    length: int
    keeps: bool
    oddities: tuple[str, ...] = ()

    @property
    def is_informational(self) -> bool:
        return 100 <= self.status < 200 and self.status != 101

    @property
    def fields(self) -> list[tuple[str, str]]:
        """Names and values of the header, in their order, without lines that have no colon."""
        lines = (line.partition(b":") for line in self.lines.split(b"\n")[1:])
        return [
            (name.strip().decode(errors="replace"), value.strip().decode(errors="replace"))
            for name, colon, value in lines
            if colon
        ]

    def value(self, name: str) -> str:
        """Return the value of a header; those of several lines joined by commas; empty if none."""
        if name.lower().encode() not in self.lines.lower():
            return ""
        return ", ".join(value for given, value in self.fields if given.lower() == name.lower())


def cannot_begin_answer(received: bytearray, begin: int) -> bool:
    """True if the bytes from there, whatever follows them, do not begin an answer."""
    if received.find(b"\n", begin) >= 0:
        return _STATUS_LINE.match(received, begin) is None
    return not b"HTTP/".startswith(received[begin : begin + 5].upper())


def parse_head(head: bytes) -> AnswerHead | None:
    """Parse an answer up to and including its blank line; None if it has no status line."""
    if (tidy := _TIDY.fullmatch(head)) is not None:
        return _framed(int(tidy[1]), head, ())
    lines = head.lstrip(b"\r\n")
    if (line := _STATUS_LINE.match(lines)) is None:
        return None
    oddities = () if len(lines) == len(head) else (BLANK_LINES,)
    return _framed(int(line[1]), _FOLD.sub(b" ", lines), (*oddities, *_oddities(lines)))


def parse_later_head(received: bytes) -> AnswerHead | None:
    """Parse the tidy head that ends these bytes, after bytes of an earlier answer; None if none.

    A body may quote a status line: only fields stand between that of an answer and its blank line.
    Each line is looked at twice at most: a receiver must not choose how long the search takes.
    """
    *lines, blank, end = received.split(b"\n")
    first = len(lines) - 1
    while first > 0 and _TIDY_FIELD.fullmatch(lines[first]) is not None:
        first -= 1
    for number in range(first, len(lines)):
        # The late bytes end anywhere in a line.
        line = lines[number][max(lines[number].rfind(b"HTTP/1."), 0) :]
        if _TIDY_LINE.fullmatch(line) is not None:
            return parse_head(b"\n".join([line, *lines[number + 1 :], blank, end]))
    return None


def _oddities(head: bytes) -> Iterator[str]:
    line, _, header = head.partition(b"\n")
    if _TIDY.fullmatch(line + b"\n\n") is None:
        yield _ODD_LINE
    header = b"\n" + header
    lines = _FOLD.sub(b" ", header)
    if lines != header:
        yield "a folded header line"
    if (end := END_OF_HEADER.search(lines)) is not None:
        lines = lines[: end.start() + 1]
    for pattern, words in _ODD_FIELDS:
        if pattern.search(lines):
            yield words


def _framed(status: int, head: bytes, oddities: tuple[str, ...]) -> AnswerHead:
    given: dict[bytes, bytes] = {}
    for name, value in _FRAMING_FIELD.findall(head):
        key = name.lower()
        given[key] = given[key] + b"," + value if key in given else value
    framing, length, odd = _body_of(given)
    keeps = framing not in {"UNTIL_CLOSED", "UNKNOWN"}
    if status in (204, 304) or status < 200:
        keeps = not given.get(b"transfer-encoding") and not length
        if status != 304 and not keeps:
            # 304 may say how long the body of another answer would be.
            odd = (*odd, f"a body announced by {status}")
        framing, length = "EMPTY", 0
    oddities += odd
    return AnswerHead(
        status,
        head,
        framing,
        length,
        keeps and not oddities and status != 101 and _persists(head, given),
        oddities,
    )


def _persists(head: bytes, given: dict[bytes, bytes]) -> bool:
    connection = given.get(b"connection")
    if connection is None:
        return head.startswith(b"HTTP/1.1")
    connection = connection.lower()
    return b"close" not in connection and (
        head.startswith(b"HTTP/1.1") or b"keep-alive" in connection
    )


_Body = tuple[Framing, int, tuple[str, ...]]


def _body_of(given: dict[bytes, bytes]) -> _Body:
    """Return how the body is framed, its length, and what is odd (RFC 9112, 6.3)."""
    coding, length = given.get(b"transfer-encoding"), given.get(b"content-length")
    if coding is not None:
        odd = () if length is None else ("Content-Length beside Transfer-Encoding",)
        if coding.strip().lower() == b"chunked":
            return "CHUNKED", 0, odd
        return "UNKNOWN", 0, (*odd, _ODD_CODING)
    if length is None:
        return "UNTIL_CLOSED", 0, ()
    if _LENGTH.fullmatch(length) is not None:
        return "LENGTH", int(length), ()
    values = {value.strip() for value in length.split(b",")}
    value = values.pop()
    if values or _LENGTH.fullmatch(value) is None:
        return "UNKNOWN", 0, (_ODD_LENGTH,)
    return "LENGTH", int(value), ("several Content-Lengths",) if b"," in length else ()
