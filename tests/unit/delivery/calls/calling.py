"""Calls as the tests make them, and servers whose answers no proper server would send."""

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime

from delivery.calls.http import Called, call_endpoint
from delivery.senders.http.request import make_request
from delivery.states import OutcomeClass
from subscriptions.values.addresses import Network
from tests.unit.delivery.senders.test_http import LOOPBACK, PARCEL, endpoint


def called(url: str, *, allowed: Sequence[Network] = LOOPBACK, **fields: object) -> Called:
    request = make_request(PARCEL, endpoint(url, **fields), now=datetime.now(UTC))
    return call_endpoint(request, allowed_networks=allowed)


def outcome(ended: Called) -> OutcomeClass:
    return ended.outcome.outcome


@contextlib.contextmanager
def serving(answer: Callable[[socket.socket], None]) -> Iterator[int]:
    """Run a server that calls `answer` with each connection; yield its port."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            while True:
                try:
                    connection, _ = listening.accept()
                except OSError:
                    return
                with connection:
                    answer(connection)

        thread = threading.Thread(target=serve)
        thread.start()
        yield listening.getsockname()[1]
        listening.shutdown(socket.SHUT_RDWR)
    thread.join()


def read_request(connection: socket.socket) -> None:
    """Read the whole request: closing with unread data resets the connection."""
    request = b""
    while not request.endswith(PARCEL.body) and (part := connection.recv(65_536)):
        request += part
