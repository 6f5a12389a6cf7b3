"""A mailbox of one test, and the clients that drain it in processes of their own."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import psycopg

from config.env import CHECKOUT
from tests.support.product import Flow
from tests.support.rest import Json
from tests.system.faults.mailbox_client import FetchRequest
from tests.system.operation.installation import eventually

BATCH = 10
VISIBILITY_SECONDS = 5

_OPEN = "SELECT count(*) FROM delivery_delivery WHERE subscription_id = %s AND settled_at IS NULL"
_SETTLED = """
    SELECT 'msg_' || message_id, status, receive_count, attempts, (
        SELECT array_agg(outcome ORDER BY number)
        FROM delivery_attempt
        WHERE delivery_id = delivery.id
    )
    FROM delivery_delivery delivery
    WHERE subscription_id = %s
"""


@dataclass(frozen=True, slots=True)
class Settled:
    """A delivery in its final state."""

    message: str
    status: str
    receive_count: int
    attempts: int
    outcomes: list[str]


class Clients:
    """The clients of one process, seen through their log."""

    def __init__(self, log: Path, process: subprocess.Popen[bytes]) -> None:
        self._log = log
        self._process = process

    @property
    def pid(self) -> int:
        return self._process.pid

    def lines(self, fact: str) -> list[Json]:
        """Return all lines of that fact, except a line that is being written."""
        whole, _, _ = self._log.read_text().rpartition("\n")
        return [line for line in map(json.loads, whole.splitlines()) if line["fact"] == fact]

    def held(self) -> dict[str, int]:
        """Return the messages that were fetched and not acknowledged, with their receive counts."""
        ended = {receipt for line in self.lines("acknowledged") for receipt, _ in line["of"]}
        fetched = [message for line in self.lines("fetched") for message in line["of"]]
        return {id: count for id, count, receipt in fetched if receipt not in ended}

    def wait_until_holding(self) -> dict[str, int]:
        """Wait until a client keeps a batch for ever, and return it."""
        eventually(lambda: self.lines("holds"), "a client holds messages")
        return self.held()

    def end(self) -> None:
        self._process.communicate()


class Draining:
    """The mailbox of one PULL subscription."""

    def __init__(self, flow: Flow, folder: Path) -> None:
        self._flow = flow
        self._folder = folder
        subscriber = flow.subscriber("reader")
        wanted = {
            "name": "mailbox",
            "subscriber": subscriber,
            "event_type": flow.event_type,
            "mode": "PULL",
        }
        self._subscription: int = flow.rest.post("subscriptions", wanted)["id"]
        self._key: str = flow.rest.post(f"subscribers/{subscriber}/keys")["key"]
        self._subscriber = subscriber
        self.clients: list[Clients] = []
        self.published: list[str] = []

    def fill(self, messages: int) -> None:
        for done in range(0, messages, 1000):
            self.published += self._flow.publish_numbered(min(1000, messages - done))

    @contextmanager
    def started(self, clients: int, *, holds_after: int | None = None) -> Iterator[Clients]:
        """Start a process with so many clients; it ends on leaving unless it was killed."""
        log = self._folder / f"clients-{len(self.clients)}.log"
        log.touch()
        wanted = FetchRequest(
            port=self._flow.product.port,
            mailbox=self._subscriber,
            key=self._key,
            log=str(log),
            clients=clients,
            batch=BATCH,
            visibility=VISIBILITY_SECONDS,
            holds_after=holds_after,
        )
        command = [
            sys.executable,
            "-m",
            "tests.system.faults.mailbox_client",
            json.dumps(asdict(wanted)),
        ]
        made = Clients(log, subprocess.Popen(command, cwd=CHECKOUT, stdin=subprocess.PIPE))
        self.clients.append(made)
        try:
            yield made
        finally:
            made.end()

    @contextmanager
    def drained_by(self, *counts: int) -> Iterator[None]:
        """Start processes with so many clients each; on leaving, wait until all is settled."""
        with ExitStack() as stack:
            for count in counts:
                stack.enter_context(self.started(count))
            yield
            self.wait_until_left(0)

    def wait_until_left(self, count: int) -> None:
        """Wait until so many messages are left; PostgreSQL must be running."""
        with self._flow.product.connect() as connection:
            eventually(
                lambda: self._open(connection) <= count, f"at most {count} messages are open"
            )

    def lines(self, fact: str) -> list[Json]:
        return [line for clients in self.clients for line in clients.lines(fact)]

    def settled(self) -> dict[str, Settled]:
        """Return every delivery of the mailbox, by its message."""
        with self._flow.product.connect() as connection:
            rows = connection.execute(_SETTLED, [self._subscription]).fetchall()
        return {row[0]: Settled(*row) for row in rows}

    def _open(self, connection: psycopg.Connection) -> int:
        row = connection.execute(_OPEN, [self._subscription]).fetchone()
        assert row is not None
        count: int = row[0]
        return count
