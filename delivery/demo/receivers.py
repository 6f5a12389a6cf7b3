"""The demo's receivers: a port with answers, and a port without a listener."""

import logging
import random
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from delivery.demo import builds

log = logging.getLogger(__name__)

HOST = "127.0.0.1"
# Failing endpoints by the beginning of their path: the status, and once in how many requests.
FALTERING = {
    "/crm/": (HTTPStatus.INTERNAL_SERVER_ERROR, 6),
    "/search/": (HTTPStatus.SERVICE_UNAVAILABLE, 3),
}


@dataclass(frozen=True, slots=True)
class Ports:
    """The ports of the demo's endpoints; `refusing` is reserved, but refuses every connection."""

    answering: int
    refusing: int


@contextmanager
def receivers(remembered: Path) -> Iterator[Ports]:
    """Serve within the block, on the ports of the last start if they are free."""
    wanted = _recall(remembered)
    with _refusing_socket(wanted.refusing) as refusing, _server(wanted.answering) as server:
        ports = Ports(server.server_address[1], refusing.getsockname()[1])
        remembered.write_text(f"{ports.answering} {ports.refusing}\n")
        threading.Thread(target=server.serve_forever, name="receivers", daemon=True).start()
        yield ports


def _recall(remembered: Path) -> Ports:
    """Return the ports of the last start; 0 stands for any."""
    try:
        answering, refusing = map(int, remembered.read_text().split())
    except (OSError, ValueError):
        return Ports(0, 0)
    return Ports(answering, refusing)


def _refusing_socket(port: int) -> socket.socket:
    refusing = socket.socket()
    try:
        refusing.bind((HOST, port))
    except (OSError, OverflowError) as error:
        log.info("another port is taken to refuse connections on", extra={"error": str(error)})
        refusing.bind((HOST, 0))
    return refusing


def _server(port: int) -> ThreadingHTTPServer:
    try:
        return ThreadingHTTPServer((HOST, port), _Receiver)
    except (OSError, OverflowError) as error:
        log.info("another port is taken to answer on", extra={"error": str(error)})
        return ThreadingHTTPServer((HOST, 0), _Receiver)


class _Receiver(BaseHTTPRequestHandler):
    """Accepts every request, and answers by the path."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self._answer(_status(self.path))
        if callback_url := self.headers.get("CallbackURL"):
            builds.begin_build(self.path, callback_url)

    def _answer(self, status: HTTPStatus) -> None:
        text = (
            b"taken\n"
            if status == HTTPStatus.OK
            else b"the demo falters now and then; send it again\n"
        )
        self.send_response(status)
        self.send_header("Content-Type", "text/plain; charset=utf-8")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    # The library's name of the argument.
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Log nothing: every attempt is in Inturn's own history."""


def _status(path: str) -> HTTPStatus:
    for beginning, (status, once_in) in FALTERING.items():
        if path.startswith(beginning) and random.randrange(once_in) == 0:
            return status
    return HTTPStatus.OK
