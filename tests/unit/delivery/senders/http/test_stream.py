"""The bytes of a connection before its first request."""

import asyncio
import socket
import time

from delivery.senders.http.answer import begin_answer
from delivery.senders.http.stream import AnswerStream, UntidyReceivers


def test_an_answer_that_comes_before_the_request_is_the_answer() -> None:
    """A busy server may refuse a connection as soon as it is made."""

    async def scenario() -> int:
        loop = asyncio.get_running_loop()
        ours, theirs = socket.socketpair()
        with theirs:
            theirs.sendall(b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n")
            transport, stream = await loop.create_connection(
                lambda: AnswerStream(
                    loop, clock=time.monotonic, untidy=UntidyReceivers(time.monotonic)
                ),
                sock=ours,
            )
            assert await stream.more()
            assert stream.begin("http://127.0.0.1:80")
            status = (await begin_answer(stream)).status
            transport.close()
        return status

    assert asyncio.run(scenario()) == 503


def test_any_number_of_answers_while_the_request_is_written_ends_with_the_last() -> None:
    async def scenario() -> int:
        loop = asyncio.get_running_loop()
        ours, theirs = socket.socketpair()
        transport, stream = await loop.create_connection(
            lambda: AnswerStream(
                loop, clock=time.monotonic, untidy=UntidyReceivers(time.monotonic)
            ),
            sock=ours,
        )
        stream.is_used = True
        stream.begin("http://127.0.0.1:80")
        transport.write(b"x" * 32 * 1024 * 1024)
        answer = asyncio.create_task(begin_answer(stream))
        with theirs:
            for number in range(2000):
                theirs.sendall(
                    b"HTTP/1.1 %d Other\r\nContent-Length: 0\r\n\r\n" % (200 + number % 7)
                )
                for _ in range(5):
                    await asyncio.sleep(0)
        status = (await answer).status
        transport.close()
        return status

    assert asyncio.run(scenario()) == 200 + 1999 % 7
