"""The body of an answer: which of the received bytes belong to the body."""

import re

from delivery.senders.http.framing import AnswerHead

_BAD_CHUNK = "an invalid chunk"
_CHUNK_SIZE = re.compile(rb"([0-9a-f]{1,15})[ \t]*+(?:;.*+)?", re.IGNORECASE | re.DOTALL)
_ONLY_CHUNK = re.compile(rb"([0-9a-f]{1,15})\r\n(.++)(?<=\r\n0\r\n\r\n)", re.IGNORECASE | re.DOTALL)
_END_BYTES = len(b"\r\n0\r\n\r\n")
# The longest line between two chunks.
_LONGEST_LINE = 4096
# The lines between chunks may be longer by this than the wanted bytes; those after the last chunk
# may be as long. A receiver that sends one byte in each chunk, or a trailer without end, would
# otherwise occupy the event loop for long.
_MOST_LINES = 8 * 1024


class Body:
    """The body of an answer, as far as it was taken from the received bytes.

    `is_over`: nothing more belongs to it. `is_usable`: its bytes are those of the receiver; not if
    nobody can tell where it begins or ends. `oddities` say what is malformed in it.
    """

    __slots__ = (
        "_framing",
        "_has_begun",
        "_is_in_trailer",
        "_left",
        "_line_bytes",
        "_must_end_line",
        "content",
        "is_over",
        "oddities",
    )

    def __init__(self, head: AnswerHead) -> None:
        self._framing = head.framing
        # Bytes that are still to come, of the body or of the chunk.
        self._left = head.length
        # The bytes of the lines around chunks; from the last chunk on, those of the trailer.
        self._line_bytes = 0
        self._has_begun = self._must_end_line = self._is_in_trailer = False
        self.content = bytearray()
        self.is_over = self._framing == "EMPTY" or (self._framing == "LENGTH" and not self._left)
        self.oddities: tuple[str, ...] = ()

    @property
    def is_usable(self) -> bool:
        return self._framing != "UNKNOWN"

    @property
    def lasts_until_closed(self) -> bool:
        return self._framing == "UNTIL_CLOSED"

    def wants_more(self, most_bytes: int) -> bool:
        """True if the body goes on, and so many bytes of it are wanted."""
        return not self.is_over and len(self.content) <= most_bytes and self._may_go_on(most_bytes)

    def _may_go_on(self, most_bytes: int) -> bool:
        most = _MOST_LINES if self._is_in_trailer else most_bytes + _MOST_LINES
        return self._line_bytes <= most

    def take(self, received: bytearray, most_bytes: int) -> None:
        """Move the bytes that belong to the body out of the received bytes.

        Takes all of them unless more are lines around chunks than suits so many wanted bytes.
        """
        if self.is_over:
            return
        if self._framing == "LENGTH":
            self._take_left(received)
            self.is_over = not self._left
        elif self._framing == "CHUNKED":
            if not self._takes_only_chunk(received):
                while received and self._may_go_on(most_bytes) and self._takes_chunk(received):
                    continue
        else:
            self.content += received
            received.clear()

    def _take_left(self, received: bytearray) -> None:
        part = received[: self._left]
        self.content += part
        self._left -= len(part)
        del received[: len(part)]

    def _takes_only_chunk(self, received: bytearray) -> bool:
        """Take a body of a single chunk that arrived whole, as most do; False for other bodies."""
        only = None if self._has_begun else _ONLY_CHUNK.fullmatch(received)
        self._has_begun = True
        if only is None or int(only[1], 16) != len(only[2]) - _END_BYTES:
            return False
        self.content += only[2][:-_END_BYTES]
        self.is_over = True
        received.clear()
        return True

    def _takes_chunk(self, received: bytearray) -> bool:
        """Take data of a chunk, or a line between chunks; False if no more can be taken."""
        if self._left:
            self._take_left(received)
            self._must_end_line = not self._left
            return True
        end = received.find(b"\n", 0, _LONGEST_LINE)
        if end < 0:
            if len(received) >= _LONGEST_LINE:
                self._fail()
            return False
        line = bytes(received[:end]).strip()
        del received[: end + 1]
        self._line_bytes += end + 1
        if self._is_in_trailer:
            self.is_over = not line
        elif self._must_end_line:
            self._must_end_line = False
            if line:
                self._fail()
        else:
            self._begin_chunk(line)
        return not self.is_over

    def _begin_chunk(self, line: bytes) -> None:
        size = _CHUNK_SIZE.fullmatch(line)
        if size is None:
            self._fail()
        else:
            self._left = int(size[1], 16)
            if not self._left:
                self._is_in_trailer, self._line_bytes = True, 0

    def _fail(self) -> None:
        self._framing, self.is_over = "UNKNOWN", True
        self.oddities = (_BAD_CHUNK,)
