"""Answers that are malformed, and some that are only unusual."""

from collections.abc import Sequence
from dataclasses import dataclass

LENGTH = "an invalid Content-Length"
CODING = "an unknown Transfer-Encoding"
NAME = "an invalid header name"
COLON = "a header line without a colon"
LINE = "an odd status line"
CONTROL = "a control character in its header"
SURPLUS = "bytes after its end"
SEVERAL = "several Content-Lengths"
BESIDE = "Content-Length beside Transfer-Encoding"
CHUNK = "an invalid chunk"
ANNOUNCED = "a body announced by 204"
EARLY = "a body that ends early"
LONG = b"x" * 60_000


@dataclass(frozen=True)
class Case:
    """An answer, what is malformed in it, and whether the receiver closes the connection then."""

    answer: bytes
    oddities: Sequence[str] = ()
    closes: bool = False
    status: int = 200


def ok(*lines: bytes, body: bytes = b"", line: bytes = b"HTTP/1.1 200 OK") -> bytes:
    return b"\r\n".join([line, *lines, b"", body])


EMPTY = b"Content-Length: 0"

CASES = {
    # Well-formed, or usual enough to be no reason for a note.
    "plain": Case(ok(EMPTY)),
    "with a body": Case(ok(b"Content-Length: 2", body=b"ok")),
    "chunked": Case(ok(b"Transfer-Encoding: chunked", body=b"2\r\nok\r\n0\r\n\r\n")),
    "chunk extension": Case(ok(b"transfer-encoding:Chunked", body=b"2;a=b\r\nok\r\n0\r\n\r\n")),
    "trailer": Case(ok(b"Transfer-Encoding: chunked", body=b"1\r\na\r\n0\r\nX: y\r\n\r\n")),
    "no reason": Case(ok(EMPTY, line=b"HTTP/1.1 200")),
    "empty reason": Case(ok(EMPTY, line=b"HTTP/1.1 200 ")),
    "reason in UTF-8": Case(ok(EMPTY, line="HTTP/1.1 200 Schön".encode())),
    "until closed": Case(ok(body=b"ok"), closes=True),
    "until closed, empty": Case(ok(), closes=True),
    "1.0": Case(ok(EMPTY, line=b"HTTP/1.0 200 OK"), closes=True),
    "1.0, kept": Case(ok(EMPTY, b"Connection: keep-alive", line=b"HTTP/1.0 200 OK")),
    "1.0, until closed": Case(ok(body=b"ok", line=b"HTTP/1.0 200 OK"), closes=True),
    "close": Case(ok(EMPTY, b"Connection: close"), closes=True),
    "bare LF": Case(b"HTTP/1.1 200 OK\nContent-Length: 2\n\nok"),
    "LF and CRLF": Case(b"HTTP/1.1 200 OK\nContent-Length: 2\r\n\nok"),
    "value without space": Case(ok(b"X:y", EMPTY)),
    "empty value": Case(ok(b"X:", EMPTY)),
    "value in Latin-1": Case(ok(b"X: \xe4", EMPTY)),
    "204": Case(ok(line=b"HTTP/1.1 204 No Content"), status=204),
    "204 of length 0": Case(ok(EMPTY, line=b"HTTP/1.1 204 No Content"), status=204),
    "204 with a type": Case(
        ok(b"Content-Type: text/html", line=b"HTTP/1.1 204 No Content"), status=204
    ),
    "informational": Case(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + ok(EMPTY)),
    "several informational": Case(b"HTTP/1.1 100 Continue\r\n\r\n" * 10 + ok(EMPTY)),
    "long value": Case(ok(b"Set-Cookie: " + LONG, EMPTY)),
    "long reason": Case(ok(EMPTY, line=b"HTTP/1.1 200 " + LONG)),
    "long name": Case(ok(LONG + b": y", EMPTY)),
    "many headers": Case(ok(*[b"X-%d: y" % number for number in range(4000)], EMPTY)),
    # A body where none belongs.
    "204 with a body": Case(
        ok(line=b"HTTP/1.1 204 No Content", body=b'{"ok":true}'), [SURPLUS], status=204
    ),
    "204 with a body and its length": Case(
        ok(b"Content-Length: 2", line=b"HTTP/1.1 204 No Content", body=b"ok"),
        [ANNOUNCED, SURPLUS],
        status=204,
    ),
    "204 with a body, closed": Case(
        ok(b"Connection: close", line=b"HTTP/1.1 204 No Content", body=b"ok"),
        [SURPLUS],
        status=204,
        closes=True,
    ),
    "204 with chunks": Case(
        ok(b"Transfer-Encoding: chunked", line=b"HTTP/1.1 204 No", body=b"0\r\n\r\n"),
        [ANNOUNCED, SURPLUS],
        status=204,
    ),
    "204 with an announced body": Case(
        ok(b"Content-Length: 9", line=b"HTTP/1.1 204 No Content"), [ANNOUNCED], status=204
    ),
    "a body of length 0": Case(ok(EMPTY, body=b"surprise"), [SURPLUS]),
    "a longer body": Case(ok(b"Content-Length: 2", body=b"okay"), [SURPLUS]),
    "a line end after the body": Case(ok(b"Content-Length: 2", body=b"ok\r\n"), [SURPLUS]),
    "two answers": Case(ok(EMPTY) + ok(EMPTY), [SURPLUS]),
    "bytes after the last chunk": Case(
        ok(b"Transfer-Encoding: chunked", body=b"0\r\n\r\nmore"), [SURPLUS]
    ),
    # Nobody can tell where it ends.
    "negative length": Case(ok(b"Content-Length: -1"), [LENGTH]),
    "signed length": Case(ok(b"Content-Length: +2", body=b"ok"), [LENGTH]),
    "length in words": Case(ok(b"Content-Length: two", body=b"ok"), [LENGTH]),
    "empty length": Case(ok(b"Content-Length:", body=b"ok"), [LENGTH]),
    "hexadecimal length": Case(ok(b"Content-Length: 0x2", body=b"ok"), [LENGTH]),
    "fraction as length": Case(ok(b"Content-Length: 2.0", body=b"ok"), [LENGTH]),
    "enormous length": Case(ok(b"Content-Length: " + b"9" * 5000, body=b"ok"), [LENGTH]),
    "length in other digits": Case(ok("Content-Length: ٢".encode(), body=b"ok"), [LENGTH]),
    "conflicting lengths": Case(
        ok(b"Content-Length: 2", b"content-length: 3", body=b"ok"), [LENGTH]
    ),
    "conflicting list": Case(ok(b"Content-Length: 2, 3", body=b"ok"), [LENGTH]),
    "the same length twice": Case(
        ok(b"Content-Length: 2", b"Content-Length: 2", body=b"ok"), [SEVERAL]
    ),
    "list of the same length": Case(ok(b"Content-Length: 2, 2", body=b"ok"), [SEVERAL]),
    "length beside chunked": Case(
        ok(b"Content-Length: 7", b"Transfer-Encoding: chunked", body=b"2\r\nok\r\n0\r\n\r\n"),
        [BESIDE],
    ),
    "length beside identity": Case(
        ok(b"Transfer-Encoding: identity", b"Content-Length: 2", body=b"ok"), [BESIDE, CODING]
    ),
    "unknown coding": Case(ok(b"Transfer-Encoding: pigeon", body=b"coo"), [CODING]),
    "coded chunks": Case(ok(b"Transfer-Encoding: gzip, chunked", body=b"0\r\n\r\n"), [CODING]),
    "chunked twice": Case(ok(b"Transfer-Encoding: chunked, chunked"), [CODING]),
    "no chunk": Case(ok(b"Transfer-Encoding: chunked", body=b"okay\r\n"), [CHUNK]),
    "negative chunk": Case(ok(b"Transfer-Encoding: chunked", body=b"-2\r\nok\r\n"), [CHUNK]),
    "chunk without end": Case(
        ok(b"Transfer-Encoding: chunked", body=b"2\r\nokay\r\n0\r\n\r\n"), [CHUNK]
    ),
    "short body": Case(ok(b"Content-Length: 9", body=b"ok"), [EARLY], closes=True),
    "short chunk": Case(ok(b"Transfer-Encoding: chunked", body=b"9\r\nok"), [EARLY], closes=True),
    # Odd headers and status lines.
    "no colon": Case(ok(b"nonsense", EMPTY), [COLON]),
    "space before the colon": Case(ok(b"X : y", EMPTY), [NAME]),
    "space before the colon of the length": Case(ok(b"Content-Length : 2", body=b"ok"), [NAME]),
    "space in a name": Case(ok(b"X Y: z", EMPTY), [NAME]),
    "empty name": Case(ok(b": y", EMPTY), [NAME]),
    "name beyond ASCII": Case(ok("Größe: 1".encode(), EMPTY), [NAME]),
    "name in brackets": Case(ok(b"<X>: y", EMPTY), [NAME]),
    "HTML in the header": Case(ok(b"<html>", b"<p style='a: b'>", EMPTY), [COLON, NAME]),
    "folded line": Case(ok(b"X: a", b"  b", EMPTY), ["a folded header line"]),
    "folded length": Case(ok(b"Content-Length:", b" 2", body=b"ok"), ["a folded header line"]),
    "NUL in a value": Case(ok(b"X: a\0b", EMPTY), [CONTROL]),
    "CR in a value": Case(ok(b"X: a\rb", EMPTY), [CONTROL]),
    "escape in a value": Case(ok(b"X: \x1b[31m", EMPTY), [CONTROL]),
    "control character in the reason": Case(ok(EMPTY, line=b"HTTP/1.1 200 O\x01K"), [LINE]),
    "reason at once": Case(ok(EMPTY, line=b"HTTP/1.1 200OK"), [LINE]),
    "two spaces": Case(ok(EMPTY, line=b"HTTP/1.1  200 OK"), [LINE]),
    "tabulator": Case(ok(EMPTY, line=b"HTTP/1.1\t200 OK"), [LINE]),
    "lower case": Case(ok(EMPTY, line=b"http/1.1 200 ok"), [LINE]),
    "1.2": Case(ok(EMPTY, line=b"HTTP/1.2 200 OK"), [LINE]),
    "HTTP/2 as text": Case(ok(EMPTY, line=b"HTTP/2 200"), [LINE]),
    "blank lines before it": Case(b"\r\n\r\n" + ok(EMPTY), ["blank lines before it"]),
    "odd informational": Case(
        b"HTTP/1.1 103 Early Hints\r\n: x\r\n\r\n" + ok(EMPTY), [NAME]
    ),
    # The same judgement for failures.
    "odd 500": Case(
        ok(b"Content-Length: 1, 2", line=b"HTTP/1.1 500 Oops", body=b"why"), [LENGTH], status=500
    ),
    "odd 422": Case(
        ok(b"a b: c", EMPTY, line=b"HTTP/1.1 422 No", body=b"why"), [NAME, SURPLUS], status=422
    ),
    "odd 307": Case(
        ok(b"Location: /x", b"Content-Length: x", line=b"HTTP/1.1 307 There"), [LENGTH], status=307
    ),
    "304 with a length": Case(
        ok(b"Content-Length: 9", line=b"HTTP/1.1 304 Not Modified"), status=304
    ),
    "304 with a body": Case(
        ok(line=b"HTTP/1.1 304 Not Modified", body=b"old"), [SURPLUS], status=304
    ),
    "a status that no class has": Case(ok(EMPTY, line=b"HTTP/1.1 799 What"), status=799),
}  # fmt: skip
