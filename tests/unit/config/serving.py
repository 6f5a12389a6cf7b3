"""Granian with an application of the tests, and raw requests to it."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPResponse
from pathlib import Path

from config.env import CHECKOUT
from config.up.child import SERVING
from tests.system.operation.installation import eventually, free_port

SECONDS = 60


@dataclass(frozen=True, slots=True)
class Served:
    """A running server."""

    port: int
    process: subprocess.Popen[bytes]
    log: Path

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=SECONDS)

    def ask(self, raw: bytes) -> tuple[HTTPResponse, bytes]:
        """Send exactly these bytes on a new connection; return the answer and its body."""
        with self.connect() as connection:
            connection.sendall(raw)
            return answer(connection, method=raw.split(b" ")[0].decode())

    def get(self, path: str) -> tuple[HTTPResponse, bytes]:
        return self.ask(f"GET {path} HTTP/1.1\r\nHost: test\r\n\r\n".encode())

    def accepts(self) -> bool:
        """Return whether it accepts connections."""
        assert self.process.poll() is None, self.log.read_text()
        try:
            self.connect().close()
        except OSError:
            return False
        return True

    def stop(self) -> int:
        """Send SIGTERM, and return the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(SECONDS)


def answer(connection: socket.socket, *, method: str = "GET") -> tuple[HTTPResponse, bytes]:
    with HTTPResponse(connection, method=method) as response:
        response.begin()
        return response, response.read()


@contextmanager
def serving(
    name: str, folder: Path, *options: str, interface: str = "rsgi", **environment: str
) -> Iterator[Served]:
    """Serve `tests.unit.config.applications:name` until leaving."""
    port = free_port()
    log = folder / f"{name}.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "granian", f"tests.unit.config.applications:{name}"),
                *("--port", str(port), "--no-ws"),
                *(
                    SERVING
                    if interface == "rsgi"
                    else ("--interface", interface, "--blocking-threads", "4")
                ),
                *("--workers-kill-timeout", "8"),
                *options,
            ],
            cwd=CHECKOUT,
            env=os.environ | environment,
            stdout=output,
            stderr=output,
        )
    served = Served(port, process, log)
    try:
        eventually(served.accepts, f"{name} is served")
        yield served
    finally:
        process.terminate()
        process.wait(SECONDS)
