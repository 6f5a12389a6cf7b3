"""A mail server for tests: it takes mails by SMTP, or hangs, or refuses, as configured."""

import asyncio
import email
import email.policy
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from email.message import EmailMessage

from tests.support.ports import close_port

SECONDS = 20


class MailServer:
    """The methods may be called from any thread; `mode` is `takes`, `hangs` or `refuses`."""

    def __init__(self) -> None:
        self.mode = "takes"
        self.port = 0
        self.mails: list[tuple[list[str], EmailMessage]] = []
        self.connections = 0
        self._changed = threading.Condition()
        self._writers: set[asyncio.StreamWriter] = set()
        self._loop = asyncio.new_event_loop()

    def wait_for_mails(self, count: int) -> list[EmailMessage]:
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.mails) >= count, SECONDS), self.mails
            return [mail for _, mail in self.mails]

    def wait_for_connections(self, count: int) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: self.connections >= count, SECONDS)

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        with self._changed:
            self.connections += 1
            self._changed.notify_all()
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            await self._converse(reader, writer)
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()
        self._writers.discard(writer)

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.mode == "hangs":
            await reader.read()
            return
        if self.mode == "refuses":
            writer.write(b"421 not now\r\n")
            await writer.drain()
            return
        writer.write(b"220 ready\r\n")
        recipients: list[str] = []
        while line := await reader.readline():
            command = line.split(b" ")[0].strip().upper()
            if command == b"DATA":
                writer.write(b"354 go on\r\n")
                text = (await reader.readuntil(b"\r\n.\r\n")).removesuffix(b".\r\n")
                self._take(recipients, text.replace(b"\r\n..", b"\r\n."))
                recipients = []
            if command == b"RCPT":
                recipients.append(line.decode().partition("<")[2].partition(">")[0])
            writer.write(b"221 bye\r\n" if command == b"QUIT" else b"250 OK\r\n")
            await writer.drain()

    def _take(self, recipients: list[str], text: bytes) -> None:
        mail = email.message_from_bytes(text, policy=email.policy.default)
        assert isinstance(mail, EmailMessage)
        with self._changed:
            self.mails.append((recipients, mail))
            self._changed.notify_all()

    @contextmanager
    def running(self) -> Iterator[None]:
        server = self._loop.run_until_complete(asyncio.start_server(self._talk, "127.0.0.1", 0))
        self.port = server.sockets[0].getsockname()[1]
        thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        thread.start()
        try:
            yield
        finally:
            closing = asyncio.run_coroutine_threadsafe(self._close(server), self._loop)
            closing.result(SECONDS)
            self._loop.call_soon_threadsafe(self._loop.stop)
            thread.join()
            self._loop.close()

    async def _close(self, server: asyncio.Server) -> None:
        """Close the port and all connections, and wait for the end of their conversations."""
        await close_port(server)
        # The conversation of a just accepted connection begins.
        await asyncio.sleep(0)
        for writer in self._writers:
            writer.transport.abort()
        rest = asyncio.all_tasks() - {asyncio.current_task()}
        await asyncio.gather(*rest, return_exceptions=True)
