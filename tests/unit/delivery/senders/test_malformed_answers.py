"""A readable status and a complete header are the answer, whatever is malformed in or after it."""

import asyncio
import random
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from itertools import pairwise

import pytest
import uvloop

from delivery.outcome import Outcome
from delivery.senders.http.client import HttpClient
from delivery.states import OutcomeClass
from tests.unit.delivery.senders.test_http import LOOPBACK, PARCEL, endpoint

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

CLASSES = {
    2: OutcomeClass.SUCCESS,
    3: OutcomeClass.REDIRECT,
    4: OutcomeClass.CLIENT_ERROR,
    5: OutcomeClass.SERVER_ERROR,
    7: OutcomeClass.SERVER_ERROR,
}


class RawReceiver:
    """Answers each request with the same pieces, in turns of the event loop; keeps the ids."""

    def __init__(self, pieces: Sequence[bytes], *, closes: bool) -> None:
        self.ids: list[str] = []
        self.connections = 0
        self._pieces = pieces
        self._closes = closes

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while (header := await _header(reader)) is not None:
                self.ids.append(header["inturn-delivery"])
                for piece in self._pieces:
                    writer.write(piece)
                    await writer.drain()
                    # The client reads it before the next one.
                    for _ in range(3):
                        await asyncio.sleep(0)
                if self._closes:
                    break
        except ConnectionError:
            pass
        finally:
            writer.close()


async def _header(reader: asyncio.StreamReader) -> dict[str, str] | None:
    """Read a request and return its header; None if the connection ends."""
    try:
        text = (await reader.readuntil(b"\r\n\r\n")).decode()
        fields = dict(line.split(": ", 1) for line in text.splitlines()[1:] if line)
        await reader.readexactly(int(fields["Content-Length"]))
    except asyncio.IncompleteReadError:
        return None
    return fields


@asynccontextmanager
async def serving(receiver: RawReceiver) -> AsyncIterator[str]:
    server = await asyncio.start_server(receiver.talk, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/hook"
    finally:
        server.close()


async def send_two(pieces: Sequence[bytes], *, closes: bool) -> tuple[RawReceiver, list[Outcome]]:
    receiver = RawReceiver(pieces, closes=closes)
    async with serving(receiver) as url, HttpClient(allowed_networks=LOOPBACK) as client:
        to = endpoint(url, timeout_seconds=20.0)
        outcomes = [await client.send(replace(PARCEL, delivery_id=number), to) for number in (1, 2)]
    return receiver, outcomes


def run(*scenarios: object) -> None:
    async def all_of_them() -> None:
        for scenario in scenarios:
            await scenario  # type: ignore[misc]

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(all_of_them())


def cut(answer: bytes, places: Sequence[int]) -> list[bytes]:
    edges = [0, *sorted(set(places)), len(answer)]
    return [answer[begin:end] for begin, end in pairwise(edges) if begin < end]


def ways_to_arrive(answer: bytes) -> list[list[bytes]]:
    """Whole; in two parts, cut around each end of a line; byte by byte."""
    ends = [place for place in range(len(answer)) if answer[place : place + 1] == b"\n"]
    near = {end + step for end in (*ends[:3], *ends[-3:]) for step in (-1, 0, 1, 2)}
    places = sorted(place for place in {1, 5, 9, 12, *near} if 0 < place < len(answer))
    size = max(len(answer) // 200, 1)
    return [
        [answer],
        *(cut(answer, [place]) for place in places),
        cut(answer, range(size, len(answer), size)),
    ]


@pytest.mark.parametrize("name", CASES)
def test_each_message_arrives_once_and_the_status_decides(name: str) -> None:
    case = CASES[name]

    async def check(pieces: Sequence[bytes]) -> None:
        receiver, outcomes = await send_two(pieces, closes=case.closes)
        assert receiver.ids == ["1", "2"], pieces
        for ended in outcomes:
            assert ended.status_code == case.status, (pieces, ended)
            assert ended.outcome is CLASSES[case.status // 100]
            # What comes in a later segment may be too late for a note.
            if len(pieces) == 1:
                assert ended.error == (
                    f"its answer is malformed: {', '.join(case.oddities)}" if case.oddities else ""
                )

    run(*(check(pieces) for pieces in ways_to_arrive(case.answer)))


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"HTTP/1.1 200 OK\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n",
        b"HTTP/1.1 2\r\n\r\n",
        b"HTTP/1.1 OK 200\r\n\r\n",
        b"HTTP 200 OK\r\n\r\n",
        b"200 OK\r\n\r\n",
        b"<html>HTTP/1.1 200 OK\r\n\r\n",
        b"\0\0\x12\4\0\0\0\0\0",
        b"HTTP/1.1 200 OK\r\nX: " + b"x" * 65_536 + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\rContent-Length: 0\r\r",
    ],
)
def test_without_a_status_line_and_the_end_of_the_header_there_is_no_answer(answer: bytes) -> None:
    async def check(pieces: Sequence[bytes]) -> None:
        _, outcomes = await send_two(pieces, closes=True)
        for ended in outcomes:
            assert (ended.outcome, ended.status_code) == (OutcomeClass.UNREACHABLE, None)

    run(*(check(pieces) for pieces in ways_to_arrive(answer)))


@pytest.mark.parametrize("seed", range(20))
def test_an_answer_cut_anywhere_is_the_same(seed: int) -> None:
    chosen = random.Random(seed)
    cases = chosen.sample([case for case in CASES.values() if len(case.answer) < 1000], 10)

    async def check(case: Case) -> None:
        places = [chosen.randrange(len(case.answer)) for _ in range(chosen.randrange(1, 8))]
        receiver, outcomes = await send_two(cut(case.answer, places), closes=case.closes)
        assert receiver.ids == ["1", "2"], (case, places)
        assert [ended.status_code for ended in outcomes] == [case.status] * 2, (case, places)

    run(*(check(case) for case in cases))
