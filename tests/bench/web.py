"""The web server of a benchmark, started by the command `web`."""

import http.client
import socket
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from subprocess import Popen

from django.conf import settings

from tests.bench.children import child

START_SECONDS = 60.0
LOOK_EVERY_SECONDS = 0.05


@contextmanager
def web(environment: Mapping[str, str] | None = None) -> Iterator[int]:
    """Serve until leaving, with these additional variables; yield the port once it answers."""
    port = free_port()
    changed = {**(environment or {}), "PORT": str(port)}
    # Keep granian's output out of the results.
    with child(
        str(settings.BASE_DIR / "manage.py"), "web", changed=changed, stdout=sys.stderr
    ) as process:
        _wait_until_ready(port, process)
        yield port


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _wait_until_ready(port: int, process: Popen[bytes]) -> None:
    deadline = time.monotonic() + START_SECONDS
    while not _is_ready(port):
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError("the web server of the benchmark does not answer")
        time.sleep(LOOK_EVERY_SECONDS)


def _is_ready(port: int) -> bool:
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=5)) as connection:
        try:
            connection.request("GET", "/readyz")
            return connection.getresponse().status == http.HTTPStatus.OK
        except OSError:
            return False
