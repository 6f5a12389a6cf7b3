"""Bodies that do not come, and many long ones at once."""

import asyncio
from collections.abc import AsyncIterator, Awaitable

import pytest

from config import request_bodies
from config.request_bodies import Bodies
from subscriptions.api.problems import Problem

PIECE = b"x" * 1000


class Sent:
    """A body in pieces, which come when they are let."""

    def __init__(self, pieces: int) -> None:
        self.may_come = asyncio.Event()
        self.asked = asyncio.Event()
        self._pieces = [PIECE] * pieces

    def __call__(self) -> Awaitable[bytes]:
        raise AssertionError("it is too long to be read at once")

    async def __aiter__(self) -> AsyncIterator[bytes]:
        self.asked.set()
        await self.may_come.wait()
        for piece in self._pieces:
            yield piece
        yield b""


def environ() -> dict[str, str]:
    return {"REQUEST_METHOD": "POST", "SERVER_PROTOCOL": "HTTP/1.1", "HTTP_TRANSFER_ENCODING": "chunked"}


def test_a_body_that_stalls_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_bodies, "STALLED_SECONDS", 0.01)

    async def scenario() -> None:
        with pytest.raises(Problem) as refused:
            await Bodies(max_bytes=10_000, long_at_a_time=1).read(environ(), Sent(1))
        assert refused.value.status_code == 408

    asyncio.run(scenario())


def test_only_some_long_bodies_are_read_at_a_time() -> None:
    async def scenario() -> None:
        bodies = Bodies(max_bytes=10_000, long_at_a_time=2)
        sent = [Sent(3) for _ in range(3)]
        reading = [asyncio.create_task(bodies.read(environ(), one)) for one in sent]
        await asyncio.gather(*(one.asked.wait() for one in sent[:2]))
        assert not sent[2].asked.is_set()
        sent[0].may_come.set()
        await sent[2].asked.wait()
        for one in sent:
            one.may_come.set()
        assert await asyncio.gather(*reading) == [PIECE * 3] * 3

    asyncio.run(scenario())


def test_a_body_that_is_too_long_is_read_no_further() -> None:
    async def scenario() -> None:
        sent = Sent(1_000_000)
        sent.may_come.set()
        told = environ()
        body = await Bodies(max_bytes=10_000, long_at_a_time=1).read(told, sent)
        assert len(body) == 10_001
        assert told["CONTENT_LENGTH"] == "10001"

    asyncio.run(scenario())
