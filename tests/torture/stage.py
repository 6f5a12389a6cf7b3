"""The base of all faults: the product that they break, and the notes and excuses in the journal."""

import random
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg

from config.embedded.postgres import running_url
from tests.support.product import Product
from tests.support.receivers import Receiver
from tests.support.rest import RestRefusedError
from tests.system.operation.installation import eventually
from tests.torture.clock import MovedClock
from tests.torture.lanes import ObservedLane
from tests.torture.records import Journal

_SENDER = re.compile(r"inturn sender (\d+) ")


class TortureStage:
    """Used by one thread. `other` is a second machine on the product's database, if any."""

    def __init__(
        self,
        product: Product,
        receiver: Receiver,
        lanes: Sequence[ObservedLane],
        journal: Journal,
        *,
        clock: MovedClock | None,
        seed: int,
        home: Path,
    ) -> None:
        self.product = product
        self.receiver = receiver
        self.lanes = lanes
        self.journal = journal
        self.clock = clock
        self.chance = random.Random(f"{seed} faults")
        self.other: Product | None = None
        self._home = home
        self._others = 0

    def start_other(self) -> None:
        """Start another installation on the same database."""
        url = running_url(self.product.home)
        if url is None:
            return
        keys = {
            "DATABASE_URL": url,
            "INTURN_SECRET_KEY": (self.product.home / "secret-key").read_text(),
            "INTURN_ENCRYPTION_KEYS": (self.product.home / "encryption-keys").read_text(),
        }
        self._others += 1
        self.other = Product(self._home / f"machine-{self._others}", **keys)
        self.journal.note("a second machine starts")
        self.other.start()
        self.journal.note("the second machine is ready")

    def senders(self) -> list[int]:
        """Return the sender processes of the first machine, in random order."""
        try:
            rows = self.execute(
                "SELECT application_name FROM pg_stat_activity WHERE datname = current_database()"
            )
        except psycopg.OperationalError:
            return []
        pids = {int(found[1]) for (name,) in rows if (found := _SENDER.match(name))}
        ours = sorted(pids & self.product.whole("cluster"))
        self.chance.shuffle(ours)
        return ours

    def patch(self, path: str, **fields: object) -> None:
        """Repeat a change until it is accepted: the fault before may still have its effect."""

        def is_accepted() -> bool:
            try:
                self.product.rest.patch(path, fields)
            except (OSError, RestRefusedError):
                return False
            return True

        eventually(is_accepted, f"{fields} is accepted")

    @contextmanager
    def excused(self, reason: str, *, lane: str | None = None) -> Iterator[None]:
        """Excuse lanes that stand still inside the block."""
        since = self.journal.note(f"{reason} …", lane=lane)
        try:
            yield
        finally:
            self.journal.note(f"… {reason}: over", lane=lane)
            self.journal.excuse(since, reason, lane=lane)

    def wait_until_well(self) -> None:
        eventually(
            lambda: self.senders() and self.product.is_ready(), "senders and web server are back"
        )

    def let_pass(self, least: float, most: float) -> None:
        # The length of a fault is part of the plan, not a wait for an event.
        time.sleep(self.chance.uniform(least, most))

    def execute(self, statement: str, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        with self.product.connect() as connection:
            return connection.execute(statement, parameters or None).fetchall()
