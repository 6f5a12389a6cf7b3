"""A server of S3 for tests: moto's, from the environment of `.ci/tools`."""

import socket
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

from tests.support import ci_tools
from tests.system.operation.installation import eventually, free_port

BUCKET = "history"
TRIES = 3
SECONDS_TO_END = 10


@contextmanager
def s3_server() -> Iterator[dict[str, str]]:
    """Start it with an empty BUCKET; yield the variables by which clients find it."""
    with _started() as port:
        address = f"http://127.0.0.1:{port}"
        # The address is ours.
        urllib.request.urlopen(  # noqa: S310
            urllib.request.Request(f"{address}/{BUCKET}", method="PUT")  # noqa: S310
        ).close()
        yield {
            "AWS_ENDPOINT_URL": address,
            "AWS_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            # Otherwise Arrow first asks a server found only in a cloud.
            "AWS_EC2_METADATA_DISABLED": "true",
        }


@contextmanager
def _started() -> Iterator[int]:
    """Yield the port of a server; it is another if a process took the first meanwhile."""
    for _ in range(TRIES):
        port = free_port()
        process = subprocess.Popen(
            [ci_tools.PYTHON, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            if _is_up(process, port):
                yield port
                return
        finally:
            _end(process)
    raise AssertionError("S3 ended at its start")


def _is_up(process: subprocess.Popen[bytes], port: int) -> bool:
    """Wait until the server listens, or has ended; return whether it runs."""
    eventually(lambda: process.poll() is not None or _listens(port), "S3 is there")
    return process.poll() is None


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(timeout=SECONDS_TO_END)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
