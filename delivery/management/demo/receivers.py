"""The demo's receivers: a port with answers, and a port without a listener."""

import json
import logging
import random
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

log = logging.getLogger(__name__)

HOST = "127.0.0.1"
# Failing endpoints by the beginning of their path: the status, and once in how many requests.
FALTERING = {
    "/crm/": (HTTPStatus.INTERNAL_SERVER_ERROR, 6),
    "/search/": (HTTPStatus.SERVICE_UNAVAILABLE, 3),
}
# A build worker takes a job, and posts the result to the callback URL so much later.
BUILD_SECONDS = 2.0
POST_SECONDS = 10.0


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
            begin_build(self.path, callback_url)

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


def begin_build(worker: str, callback_url: str) -> None:
    """Build in the background. A worker killed meanwhile never answers, as in a real system."""
    timer = threading.Timer(BUILD_SECONDS, _end_build, [worker, callback_url])
    timer.daemon = True
    timer.start()


def _end_build(worker: str, callback_url: str) -> None:
    result = "failed" if random.randrange(8) == 0 else "passed"
    body = json.dumps({"worker": worker.rpartition("/")[2], "result": result})
    try:
        status = _post(callback_url, body)
    except (OSError, HTTPException) as error:
        log.info("a callback of the demo was not answered", extra={"error": str(error)})
    else:
        log.info("a build of the demo is done", extra={"result": result, "status": status})


def _post(url: str, body: str) -> int:
    parts = urlsplit(url)
    kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
    connection = kind(parts.netloc, timeout=POST_SECONDS)
    try:
        connection.request("POST", parts.path, body, {"Content-Type": "application/json"})
        return connection.getresponse().status
    finally:
        connection.close()
