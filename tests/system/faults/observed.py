"""The senders as a test sees them in the database: the sender of each lane, and waits for locks."""

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import psycopg
from psycopg import sql

from delivery.models.lane import SHARD_LOCKS
from delivery.models.shard import shard_of
from tests.support.product import Flow, Product, StartedSubscription
from tests.system.operation.installation import eventually, kill

_SENDER = re.compile(r"inturn sender (\d+)")


class Observed:
    """Opens its own connections, so that a killed server is no obstacle."""

    def __init__(self, product: Product) -> None:
        self._product = product

    def senders(self) -> set[int]:
        """Return the process ids of the running senders."""
        with self._product.connect() as connection:
            rows = connection.execute(
                "SELECT application_name FROM pg_stat_activity WHERE datname = current_database()"
            ).fetchall()
        return {int(found[1]) for (name,) in rows if (found := _SENDER.match(name))}

    def is_well(self, *, senders: int | None = None) -> bool:
        """Return whether PostgreSQL answers the web server and so many senders, or any number.

        PostgreSQL may have been killed.
        """
        try:
            found = len(self.senders())
            return (found > 0 if senders is None else found == senders) and self._product.is_ready()
        except psycopg.OperationalError:
            return False

    def wait_until_quiet(self) -> None:
        """Wait until no lane of another test sends: its outcomes would share the commits."""
        sending = (
            "SELECT count(*) FROM delivery_lane lane"
            " JOIN delivery_delivery delivery ON delivery.id = ANY (lane.run_ids)"
            " WHERE delivery.status = 'PENDING'"
        )

        def is_quiet() -> bool:
            with self._product.connect() as connection:
                row = connection.execute(sending).fetchone()
            return row == (0,)

        eventually(is_quiet, "no lane sends")

    def lane_id(self, of: StartedSubscription) -> int:
        with self._product.connect() as connection:
            row = connection.execute(
                "SELECT lane.id FROM delivery_lane lane JOIN subscriptions_subscriber owner"
                " ON owner.id = lane.subscriber_id WHERE owner.name = %s",
                [of.subscriber],
            ).fetchone()
        assert row is not None
        id: int = row[0]
        return id

    def sender_of(self, of: StartedSubscription) -> int:
        """Return the process id of the lane's sender: it holds the lock of its shard."""
        return self.sender_of_lane(self.lane_id(of))

    def sender_of_lane(self, lane_id: int) -> int:
        """Return the process id of the lane's sender, once a move of its shard is over."""
        found: list[int] = []

        def is_held() -> bool:
            found[:] = self._holders(lane_id)
            return len(found) == 1

        eventually(is_held, "one sender has the shard of the lane")
        return found[0]

    def is_idle(self, lane_id: int) -> bool:
        """Return whether the lane has no attempt in flight and is not stopped.

        Its sender then has nothing to write about it.
        """
        idle = (
            "SELECT lane.state = 'IDLE' AND NOT EXISTS ("
            "   SELECT FROM delivery_delivery WHERE id = ANY (lane.run_ids) AND status = 'PENDING'"
            ") FROM delivery_lane lane WHERE lane.id = %s"
        )
        with self._product.connect() as connection:
            row = connection.execute(idle, [lane_id]).fetchone()
        return row == (True,)

    def forget_run(self, lane_id: int) -> None:
        """Leave the lane as its sender leaves an idle one."""
        with self._product.connect() as connection:
            connection.execute(
                "UPDATE delivery_lane SET run_ids = '{}', run_attempts = '{}', state = 'IDLE' "
                "WHERE id = %s",
                [lane_id],
            )

    def lane_of_kind(self, kind: str) -> int:
        """Return the id of the retry lane or the callback lane."""
        with self._product.connect() as connection:
            row = connection.execute(
                "SELECT id FROM delivery_lane WHERE kind = %s", [kind]
            ).fetchone()
        assert row is not None
        id: int = row[0]
        return id

    def next_queue_lane_id(self, flow: Flow) -> int:
        """Return the lane of the flow's next message, provided that nobody else publishes."""
        number = int(flow.publish().removeprefix("msg_")) + 1
        return self._queue_lane_id(number)

    def queue_sender_of(self, message: str) -> int:
        """Return the process id of the sender that serves the message's lane."""
        return self.sender_of_lane(self._queue_lane_id(int(message.removeprefix("msg_"))))

    def _queue_lane_id(self, message_id: int) -> int:
        with self._product.connect() as connection:
            row = connection.execute(
                "SELECT id FROM delivery_lane WHERE kind = 'QUEUE' AND number = %s %% 5",
                [message_id],
            ).fetchone()
        assert row is not None
        id: int = row[0]
        return id

    def run_of(self, of: StartedSubscription) -> list[int]:
        with self._product.connect() as connection:
            row = connection.execute(
                "SELECT run_ids FROM delivery_lane WHERE id = %s", [self.lane_id(of)]
            ).fetchone()
        assert row is not None
        ids: list[int] = row[0]
        return ids

    @contextmanager
    def locked(self, table: str, row_id: int) -> Iterator["RowLock"]:
        """Lock a row as an update does: only senders that write the row wait."""
        lock = RowLock(self, self._product, table, row_id)
        lock.take()
        try:
            yield lock
        finally:
            lock.release()

    def waiting_for(self, backend: int) -> dict[int, int]:
        """Return the senders that wait for that backend's locks: backends by process id."""
        with self._product.connect() as connection:
            rows = connection.execute(
                "SELECT application_name, pid FROM pg_stat_activity "
                "WHERE %s = ANY (pg_blocking_pids(pid))",
                [backend],
            ).fetchall()
        return {int(found[1]): pid for name, pid in rows if (found := _SENDER.match(name))}

    def terminate(self, backend: int) -> None:
        """End a backend whose client is dead; otherwise it completes the last statement."""
        with self._product.connect() as connection:
            connection.execute("SELECT pg_terminate_backend(%s, 10000)", [backend])

    def _holders(self, lane_id: int) -> list[int]:
        with self._product.connect() as connection:
            rows = connection.execute(
                "SELECT application_name FROM pg_locks JOIN pg_stat_activity USING (pid)"
                " WHERE locktype = 'advisory' AND granted AND classid = %s AND objid = %s",
                [SHARD_LOCKS, shard_of(lane_id)],
            ).fetchall()
        return [int(found[1]) for (name,) in rows if (found := _SENDER.match(name))]


class RowLock:
    """A row that the test has locked."""

    def __init__(self, observed: Observed, product: Product, table: str, row_id: int) -> None:
        self._observed = observed
        self._product = product
        self._table = table
        self._row_id = row_id
        self._connection = product.connect()
        # The row's version: the transaction that wrote it.
        self._version = ""

    def take(self) -> None:
        query = sql.SQL("SELECT xmin::text FROM {} WHERE id = %s FOR NO KEY UPDATE").format(
            sql.Identifier(self._table)
        )
        self._connection.execute("BEGIN")
        row = self._connection.execute(query, [self._row_id]).fetchone()
        assert row is not None
        self._version = row[0]

    def release(self) -> None:
        self._connection.close()

    def kill_who_waits(self) -> int:
        """Wait for a sender to need the row, kill it, and return its backend, which still waits."""
        waiting: dict[int, int] = {}

        def is_waited_for() -> bool:
            waiting.update(self._observed.waiting_for(self._backend))
            return bool(waiting)

        eventually(is_waited_for, "a sender waits for the row")
        ((process, backend),) = waiting.items()
        kill(process)
        return backend

    def kill_who_commits(self) -> None:
        """Kill a sender that needs the row, and release the row to its backend, which commits.

        A backend waits for a moment only. So the test queues for the row behind it, before the
        killed sender's successor does: if the test finds the row unchanged, it kills that
        successor.
        """
        while True:
            next_in_line = RowLock(self._observed, self._product, self._table, self._row_id)
            with ThreadPoolExecutor(max_workers=1) as pool:
                eventually(self._is_waited_for, "a sender waits for the row")
                taken = pool.submit(next_in_line.take)
                self.kill_who_waits()
                self.release()
                taken.result()
            is_committed = next_in_line._version != self._version
            self._connection = next_in_line._connection
            if is_committed:
                return

    def _is_waited_for(self) -> bool:
        return bool(self._observed.waiting_for(self._backend))

    @property
    def _backend(self) -> int:
        return self._connection.info.backend_pid
