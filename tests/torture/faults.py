"""What a torture run does to the product: one fault at a time, chosen and dosed by the seed.

A fault notes when it begins and ends, and excuses the lanes that it may stop for that time.
"""

import random
import re
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import psycopg

from config import processes
from config.embedded.postgres import running_url
from tests.operation.installation import eventually
from tests.product import Product
from tests.receivers import Receiver
from tests.rest import RefusedError
from tests.torture.cast import Lane
from tests.torture.records import Journal, Window

_SENDER = re.compile(r"inturn sender (\d+)")

Fault = Callable[["Faults"], None]


class Faults:
    """Breaks things; used by one thread."""

    def __init__(
        self,
        product: Product,
        receiver: Receiver,
        lanes: Sequence[Lane],
        journal: Journal,
        *,
        seed: int,
        home: Path,
    ) -> None:
        self._product = product
        self._receiver = receiver
        self._lanes = lanes
        self._journal = journal
        self._chance = random.Random(f"{seed} faults")
        self._home = home
        self._other: Product | None = None
        self._others = 0

    def strike(self, over: threading.Event) -> None:
        """One fault after the other, until it is over; every kind comes before any comes twice."""
        while not over.is_set():
            kinds = list(KINDS)
            self._chance.shuffle(kinds)
            for kind in kinds:
                if over.wait(self._chance.uniform(0.5, 2)):
                    break
                kind(self)

    def end(self) -> None:
        """Undo what lasts, and wait until the product is well."""
        if self._other is not None:
            self._other.kill_all()
            self._other = None
            self._journal.crashes += 1
        with self._excused("the end of all faults"):
            self._wait_until_well()

    def kill_sender(self) -> None:
        pids = self._senders()
        if pids:
            self._crash(f"kill -9 of sender {pids[0]}")
            processes.send(signal.SIGKILL, [pids[0]])

    def kill_all_senders(self) -> None:
        pids = self._senders()
        self._crash(f"kill -9 of the senders {pids}")
        processes.send(signal.SIGKILL, pids)

    def stop_sender(self) -> None:
        """Freeze a sender: its lanes may stand still until others have them, however long it is frozen."""
        pids = self._senders()
        if pids:
            reason = f"SIGSTOP of sender {pids[0]}"
            since = self._crash(reason)
            processes.send(signal.SIGSTOP, [pids[0]])
            self._let_pass(2, 15)
            processes.send(signal.SIGCONT, [pids[0]])
            self._journal.note(f"… {reason}: over")
            self._journal.excuse(since, reason, until=since)

    def end_backends(self) -> None:
        self._crash("pg_terminate_backend of every connection")
        self._execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND usename = current_user AND pid <> pg_backend_pid()"
        )

    def kill_postgres(self) -> None:
        with self._excused("kill -9 of the postmaster"):
            self._crash("kill -9 of the postmaster")
            postmaster = self._product.postmaster()
            if postmaster is not None:
                processes.send(signal.SIGKILL, [postmaster])
                self._product.wait_for_postgres_after(postmaster)
            self._wait_until_well()

    def kill_web(self) -> None:
        self._journal.note("kill -9 of the web server")
        processes.send(signal.SIGKILL, self._product.whole("web"))

    def kill_cluster(self) -> None:
        self._crash("kill -9 of the cluster")
        with self._excused("kill -9 of the cluster"):
            processes.send(signal.SIGKILL, self._product.whole("cluster"))
            self._wait_until_well()

    def lock_row(self) -> None:
        """Hold the row of one open delivery: only its own lane may wait for it."""
        with self._product.connect() as connection, connection.transaction():
            row = connection.execute(
                "SELECT delivery.id, subscription.name FROM delivery_delivery delivery"
                " JOIN subscriptions_subscription subscription ON subscription.id = delivery.subscription_id"
                " WHERE delivery.status = 'PENDING' AND subscription.name = ANY (%s)"
                " LIMIT 1 FOR UPDATE OF delivery SKIP LOCKED",
                [[lane.name for lane in self._lanes if lane.role.is_serial]],
            ).fetchone()
            if row is not None:
                with self._excused(f"the row of delivery {row[0]} is locked", lane=row[1]):
                    self._let_pass(1, 5)

    def lock_table(self) -> None:
        with (
            self._excused("LOCK TABLE delivery_delivery"),
            self._product.connect() as connection,
            connection.transaction(),
        ):
            connection.execute("LOCK TABLE delivery_delivery IN EXCLUSIVE MODE")
            self._let_pass(0.5, 2)

    def refuse_connections(self) -> None:
        with self._excused("the receiver refuses connections"):
            self._receiver.refuse_connections()
            self._let_pass(0.5, 2)
            self._receiver.accept_connections()

    def change_configuration(self) -> None:
        lane = self._chance.choice(self._lanes)
        url = f"{lane.subscribed.endpoint.url}?changed={self._chance.randrange(1000)}"
        self._journal.note(f"endpoint {url}", lane=lane.name)
        self._patch(lane, endpoint=url)

    def deactivate(self) -> None:
        lane = self._chance.choice(self._lanes)
        since = self._journal.note("INACTIVE", lane=lane.name)
        self._patch(lane, status="INACTIVE")
        self._let_pass(0.5, 3)
        self._patch(lane, status="ACTIVE", backlog="deliver")
        until = self._journal.note("ACTIVE", lane=lane.name)
        self._journal.inactive.append(Window(since, until, lane.name, "INACTIVE"))
        self._journal.excuse(since, "INACTIVE", lane=lane.name, until=until)

    def second_machine(self) -> None:
        """Start another installation on the same database; or kill the one that there is, or stop it in order."""
        if self._other is None:
            self._others += 1
            self._other = self._start_other(self._home / f"machine-{self._others}")
            return
        if self._chance.random() < 0.5:
            self._crash("kill -9 of the second machine")
            self._other.kill_all()
        else:
            # Everything under way is settled or recorded as in doubt by its own senders.
            self._crash("orderly stop of the second machine")
            self._other.stop()
            self._other.kill_all()
        self._other = None

    def _start_other(self, home: Path) -> Product | None:
        url = running_url(self._product.home)
        if url is None:
            return None
        keys = {
            "DATABASE_URL": url,
            "INTURN_SECRET_KEY": (self._product.home / "secret-key").read_text(),
            "INTURN_ENCRYPTION_KEYS": (self._product.home / "encryption-keys").read_text(),
        }
        other = Product(home, **keys)
        self._journal.note("a second machine starts")
        other.start()
        self._journal.note("the second machine is ready")
        return other

    def _crash(self, text: str) -> float:
        self._journal.crashes += 1
        return self._journal.note(text)

    def _patch(self, lane: Lane, **fields: object) -> None:
        """Repeat a change until it is accepted: the fault before may still have its effect."""

        def is_accepted() -> bool:
            try:
                self._product.rest.patch(f"subscriptions/{lane.subscribed.id}", fields)
            except (OSError, RefusedError):
                return False
            return True

        eventually(is_accepted, f"{fields} is accepted")

    @contextmanager
    def _excused(self, reason: str, *, lane: str | None = None) -> Iterator[None]:
        since = self._journal.note(f"{reason} …", lane=lane)
        try:
            yield
        finally:
            self._journal.note(f"… {reason}: over", lane=lane)
            self._journal.excuse(since, reason, lane=lane)

    def _wait_until_well(self) -> None:
        eventually(lambda: self._senders() and self._product.is_ready(), "senders and web server are back")

    def _let_pass(self, least: float, most: float) -> None:
        # The length of a fault is part of the plan, no wait for anything.
        time.sleep(self._chance.uniform(least, most))

    def _senders(self) -> list[int]:
        """The processes of the first machine that serve lanes, in random order."""
        try:
            rows = self._execute(
                "SELECT DISTINCT application_name FROM pg_stat_activity WHERE datname = current_database()"
            )
        except psycopg.OperationalError:
            return []
        pids = [int(found[1]) for (name,) in rows if (found := _SENDER.match(name))]
        ours = sorted(set(pids) & self._product.whole("cluster"))
        self._chance.shuffle(ours)
        return ours

    def _execute(self, statement: str) -> list[tuple[str, ...]]:
        with self._product.connect() as connection:
            return connection.execute(statement.encode()).fetchall()


KINDS: Sequence[Fault] = (
    Faults.kill_sender,
    Faults.kill_sender,
    Faults.kill_all_senders,
    Faults.stop_sender,
    Faults.end_backends,
    Faults.kill_postgres,
    Faults.kill_web,
    Faults.kill_cluster,
    Faults.lock_row,
    Faults.lock_table,
    Faults.refuse_connections,
    Faults.change_configuration,
    Faults.deactivate,
    Faults.second_machine,
)
