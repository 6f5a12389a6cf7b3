"""Senders behind a pooler that gives each connection a server connection for its whole life."""

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from io import BufferedReader

import pytest
from django.db import connection

from delivery.senders.claims import Claims
from delivery.senders.context import SenderContext
from tests.support import factories
from tests.unit.delivery.senders.running import elsewhere, with_claims

pytestmark = pytest.mark.django_db(transaction=True)

LANES = 40
# PostgreSQL's protocol: the message with the backend's process id, and the one that ends the start.
BACKEND_KEY_DATA, READY_FOR_QUERY = b"K", b"Z"
NO_TLS = b"N"
INVENTED = 0x7BADF00D


class Pooler:
    """Forwards all traffic, but invents each client's process id, as PgBouncer does."""

    def __init__(self, host: str, port: int) -> None:
        self._server = (host, port)
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def close(self) -> None:
        """Return when all its connections have ended."""
        # A thread in accept() does not notice a close.
        self._listening.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()
        self._listening.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            self._threads.append(threading.Thread(target=self._serve, args=(client,)))
            self._threads[-1].start()

    def _serve(self, client: socket.socket) -> None:
        with (
            client,
            socket.create_connection(self._server) as server,
            server.makefile("rb") as answers,
        ):
            asking = threading.Thread(target=_pump, args=(client.recv, server))
            asking.start()
            _forward_start(answers, client)
            _pump(answers.read1, client)
            asking.join()


def _forward_start(answers: BufferedReader, client: socket.socket) -> None:
    """Forward the server's messages until it accepts statements, or ends the connection."""
    kind = b""
    while kind != READY_FOR_QUERY:
        kind = answers.read(1)
        if not kind:  # As after a request to cancel a statement.
            return
        if kind == NO_TLS:  # One byte, and no message.
            client.sendall(kind)
            continue
        length = answers.read(4)
        content = answers.read(struct.unpack("!I", length)[0] - 4)
        if kind == BACKEND_KEY_DATA:
            content = struct.pack("!I", INVENTED) + content[4:]
        client.sendall(kind + length + content)


def _pump(receive: Callable[[int], bytes], other: socket.socket) -> None:
    try:
        while piece := receive(65_536):
            other.sendall(piece)
        other.shutdown(socket.SHUT_WR)
    except OSError:
        return


@pytest.fixture
def pooler(monkeypatch: pytest.MonkeyPatch) -> Iterator[Pooler]:
    """New connections go through the pooler."""
    settings = connection.settings_dict
    pooler = Pooler(settings["HOST"], int(settings["PORT"]))
    monkeypatch.setitem(settings, "PORT", str(pooler.port))
    try:
        yield pooler
    finally:
        connection.close()
        pooler.close()


def reported_and_real() -> tuple[int, int]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        (real,) = cursor.fetchone() or (0,)
    return connection.connection.info.backend_pid, real


def test_a_sender_serves_every_lane_behind_a_pooler(pooler: Pooler) -> None:
    lanes = [factories.subscriber().lane.pk for _ in range(LANES)]

    async def scenario(claims: Claims, context: SenderContext) -> None:
        reported, real = await elsewhere(reported_and_real)
        assert reported == INVENTED != real
        await claims.serve(lanes)
        assert sorted(context.lanes) == sorted(lanes)

    with_claims(scenario)
