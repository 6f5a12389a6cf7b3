"""A readable status and a complete header are the answer, whatever is malformed in or after it."""

import asyncio
import random
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import pairwise

import pytest
import uvloop

from delivery.outcome import Outcome
from delivery.senders.http.client import HttpClient
from delivery.states import OutcomeClass
from tests.unit.delivery.senders.http.malformed_answers import CASES, Case
from tests.unit.delivery.senders.http.test_client import LOOPBACK, PARCEL, endpoint

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
