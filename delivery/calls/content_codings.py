"""Undoing the Content-Encoding of an answer: gzip and deflate, which old servers use unrequested.

It is done in the waiting thread, whole or as far as the answer came: an event loop must not be
occupied by it.
"""

import zlib
from collections.abc import Iterator

# A member of gzip leaves the rest of the piece as a copy: pieces bound the cost of many members.
_PIECE_BYTES = 16 * 1024
_GZIP = 16 + zlib.MAX_WBITS
_NOTHING = frozenset({"", "identity"})
_CODINGS = frozenset({"gzip", "x-gzip", "deflate"})


class UndecodableError(ValueError):
    """The body does not match the codings; `begun` is the decoded part."""

    def __init__(self, begun: bytes) -> None:
        super().__init__()
        self.begun = begun


def codings_of(content_encoding: str) -> list[str] | None:
    """Return the codings of a header in the order of their application; None if any is unknown."""
    names = [name.strip() for name in content_encoding.lower().split(",")]
    codings = [name for name in names if name not in _NOTHING]
    return codings if _CODINGS.issuperset(codings) else None


def decoded(body: bytes, codings: list[str], *, most: int) -> bytes:
    """Return the body before the codings, cut after `most` bytes; raises UndecodableError."""
    for coding in reversed(codings):
        body = _inflated(body, coding, most=most) if body else body
    return body


def _inflated(body: bytes, coding: str, *, most: int) -> bytes:
    wbits = _GZIP if coding != "deflate" else zlib.MAX_WBITS if _is_zlib(body) else -zlib.MAX_WBITS
    result = bytearray()
    members, inflater = 0, zlib.decompressobj(wbits)
    try:
        for piece in _pieces(body):
            rest = piece
            while rest and len(result) < most:
                result += inflater.decompress(rest, most - len(result))
                rest = inflater.unused_data
                if inflater.eof:
                    members, inflater = members + 1, zlib.decompressobj(wbits)
    except zlib.error:
        # Bytes after a member, themselves no member, are ignored, as browsers and curl do.
        if not members:
            raise UndecodableError(bytes(result)) from None
    if not members and len(result) < most:
        raise UndecodableError(bytes(result))
    return bytes(result)


def _pieces(body: bytes) -> Iterator[bytes]:
    for start in range(0, len(body), _PIECE_BYTES):
        yield body[start : start + _PIECE_BYTES]


def _is_zlib(body: bytes) -> bool:
    """Return whether deflate has the header (RFC 1950), which some servers leave out."""
    return len(body) > 1 and body[0] & 0x0F == 8 and (body[0] << 8 | body[1]) % 31 == 0
