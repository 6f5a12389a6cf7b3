"""Checks of `up` before it starts anything."""

import errno
import fcntl
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from config.addresses import Address
from config.env import Environment
from config.up import processes


class CannotStartError(RuntimeError):
    """Nothing was left running; the message is for the user."""


@contextmanager
def single_instance(home: Path) -> Iterator[None]:
    home.mkdir(parents=True, exist_ok=True)
    with (home / "up.lock").open("ab") as lock:

        def taken() -> bool:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
            return True

        # Give another `up` a moment to end.
        if not processes.wait_until(taken, seconds=1):
            raise CannotStartError(
                f"another `up` is running on {home}: stop it, or set INTURN_HOME"
            )
        yield


def exposure(environment: Environment) -> Iterator[str]:
    """Yield a warning if other machines reach the web server without encryption."""
    if environment.listen.is_loopback or environment.tls is not None:
        return
    if environment.base_url.startswith("https://"):
        yield (
            f"warning: {environment.listen} trusts X-Forwarded-For of every machine that reaches "
            f"port {environment.port}: let only the proxy reach it"
        )
    else:
        yield (
            f"warning: keys and messages cross the network to {environment.listen} unencrypted: "
            "set INTURN_TLS_CERTIFICATE and INTURN_TLS_KEY, "
            "or put a proxy with TLS in front and set INTURN_BASE_URL"
        )


def require_free_port(listen: Address, port: int) -> None:
    family = socket.AF_INET if listen.version == 4 else socket.AF_INET6
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((str(listen), port))
        except OSError as error:
            if error.errno == errno.EADDRNOTAVAIL:
                raise CannotStartError(
                    f"{listen} is no address of this machine: set INTURN_LISTEN"
                ) from error
            raise CannotStartError(
                f"port {port} cannot be used ({error.strerror}): set PORT"
            ) from error
