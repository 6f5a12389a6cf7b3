"""A program for its own network namespace: its database's machine vanishes silently.

The database is reached through an address whose packets go through this program: a TUN device
passes each packet to it, and it returns the packet with source and destination exchanged, which is
all that a machine on the other side would do. When it stops, packets are neither acknowledged nor
refused: as when a machine loses its power. A process that relays bytes within one namespace could
not do this, for its kernel would still acknowledge.

It prints the result of each connection of the product, as one JSON object.
"""

import asyncio
import fcntl
import json
import os
import shutil
import socket
import struct
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import cache
from typing import Any
from urllib.parse import urlsplit

US, THEM = "10.99.0.1", "10.99.0.2"
TUN, TUNSETIFF, IFF_TUN_WITHOUT_HEADER = "/dev/net/tun", 0x400454CA, 0x1001
PACKET = 65_536
NAMESPACE = (
    ("unshare", "--net") if os.geteuid() == 0 else ("unshare", "--user", "--map-root-user", "--net")
)


@cache
def missing() -> str:
    """Return why no machine can vanish here; empty if one can."""
    if shutil.which("ip") is None:
        return "needs iproute2"
    if not os.access(TUN, os.R_OK | os.W_OK):
        return f"needs {TUN}"
    tried = subprocess.run(
        [*NAMESPACE, "ip", "link", "set", "lo", "up"], capture_output=True, check=False
    )
    return "" if tried.returncode == 0 else "needs network namespaces"


class Far:
    """The machine on the other side, until it vanishes."""

    def __init__(self) -> None:
        for command in (
            "ip link set lo up",
            "ip tuntap add tun0 mode tun",
            f"ip addr add {US} peer {THEM} dev tun0",
            "ip link set tun0 up",
        ):
            subprocess.run(command.split(), check=True)
        self._device = os.open(TUN, os.O_RDWR)
        fcntl.ioctl(self._device, TUNSETIFF, struct.pack("16sH", b"tun0", IFF_TUN_WITHOUT_HEADER))
        self._is_there = True
        threading.Thread(target=self._reflect, daemon=True).start()

    def vanish(self) -> None:
        self._is_there = False

    def _reflect(self) -> None:
        while True:
            packet = os.read(self._device, PACKET)
            if self._is_there and packet[0] >> 4 == 4:
                # The order of the addresses does not change the checksum.
                os.write(self._device, packet[:12] + packet[16:20] + packet[12:16] + packet[20:])


def serve(port: int) -> int:
    """Serve the database's port on the far machine; return its number."""
    listening = socket.create_server((US, 0))

    def accept() -> None:
        while True:
            near, _ = listening.accept()
            there = socket.create_connection(("127.0.0.1", port))
            for source, other in ((near, there), (there, near)):
                threading.Thread(target=_pump, args=(source, other), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    number: int = listening.getsockname()[1]
    return number


def _pump(source: socket.socket, other: socket.socket) -> None:
    try:
        while piece := source.recv(PACKET):
            other.sendall(piece)
        other.shutdown(socket.SHUT_WR)
    except OSError:
        return


@contextmanager
def database(far_port: Callable[[int], int]) -> Iterator[str]:
    from config.embedded.postgres import throwaway

    with throwaway() as url:
        parts = urlsplit(url)
        assert parts.port is not None
        host = f"{THEM}:{far_port(parts.port)}"
        yield url.replace(f"127.0.0.1:{parts.port}", host)


def reported(act: Callable[[], Any]) -> str:
    """Return the result of an act: the name of its exception, or its return value."""
    try:
        return str(act())
    except Exception as error:  # noqa: BLE001 - the kind of error is the result
        return type(error).__name__


def main() -> None:
    far = Far()
    with ExitStack() as stack:
        os.environ["DATABASE_URL"] = stack.enter_context(database(serve))
        os.environ["INTURN_HOME"] = stack.enter_context(tempfile.TemporaryDirectory())
        os.environ["DJANGO_SETTINGS_MODULE"] = "config.settings"
        import django

        django.setup()
        acts = stack.enter_context(connected())
        far.vanish()
        with ThreadPoolExecutor(len(acts)) as pool:
            results = {name: pool.submit(reported, act) for name, act in acts.items()}
            print(
                json.dumps({name: result.result() for name, result in results.items()}), flush=True
            )
        # Closing the connections would wait for the vanished machine.
        os._exit(0)


@contextmanager
def connected() -> Iterator[dict[str, Callable[[], Any]]]:
    """Open a connection of each kind, and yield the calls to make on a vanished machine."""
    import adbc_driver_postgresql.dbapi
    import psycopg
    from django.db import connection
    from django.test import Client

    from delivery.database.connections import connect_notifier, connect_sender
    from delivery.pipeline import settings

    def in_django() -> None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")

    def asked() -> str:
        answer = Client(SERVER_NAME="127.0.0.1").get("/readyz")
        return f"{answer.status_code} {answer.json()['type']} {answer.get('Retry-After')}"

    # As a thread of the web server, which has served requests before.
    web = ThreadPoolExecutor(1)
    web.submit(asked).result()
    in_django()
    own = connection.connection
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, daemon=True).start()

    def on_loop(coroutine: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, loop).result()

    async def hear(listening: psycopg.AsyncConnection) -> None:
        async for _ in listening.notifies():
            pass

    sender, listener = on_loop(connect_sender("sender")), on_loop(connect_sender("listener"))
    notifying = connect_notifier()
    reader = psycopg.connect(settings.conninfo("reader"), autocommit=True)
    arrow = adbc_driver_postgresql.dbapi.connect(settings.conninfo("arrow"), autocommit=True)
    cursor = arrow.cursor()
    cursor.execute("SELECT 1")
    cursor.fetchall()
    yield {
        "django": lambda: own.execute("SELECT 1"),
        "sender": lambda: on_loop(sender.execute("SELECT 1")),
        "listener": lambda: on_loop(hear(listener)),
        "notifier": lambda: notifying.execute("SELECT 1"),
        "pipeline": lambda: reader.execute("SELECT 1"),
        "arrow": lambda: cursor.execute("SELECT 1"),
        "request": lambda: web.submit(asked).result(),
    }


if __name__ == "__main__":
    main()
