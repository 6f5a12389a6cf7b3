"""A gate before the commits that store messages of one event type."""

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg.errors import DeadlockDetected

from tests.support.product import Flow
from tests.system.operation.installation import eventually

LOCK = 20_261_124
# Delays each commit that stores messages of the event type.
GATE = """
    CREATE FUNCTION test_gate() RETURNS trigger LANGUAGE plpgsql SET lock_timeout = 0 AS $$
    BEGIN
        PERFORM pg_advisory_xact_lock_shared({lock});
        RETURN NULL;
    END $$;
    CREATE CONSTRAINT TRIGGER test_gate AFTER INSERT ON delivery_message
    DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW WHEN (NEW.event_type_id = {event_type}) EXECUTE FUNCTION test_gate();
"""
# The lock is a constant.
AT_THE_GATE = (
    f"SELECT count(*) FROM pg_locks "  # noqa: S608
    f"WHERE locktype = 'advisory' AND NOT granted AND objid = {LOCK}"
)


def change_schema(own: psycopg.Connection, statement: str) -> None:
    """Execute it; again after a deadlock with a statement of the product.

    A trigger locks all partitions, of which such a statement may have locked some.
    """

    def is_done() -> bool:
        try:
            own.execute(statement.encode())
        except DeadlockDetected:
            return False
        return True

    eventually(is_done, "the schema is changed")


class Gate:
    """While it is closed, commits of the flow's messages wait."""

    def __init__(self, own: psycopg.Connection, event_type: str) -> None:
        self._own = own
        (self._id,) = self._row(
            "SELECT id FROM subscriptions_eventtype WHERE name = %s", event_type
        )
        own.execute(f"SELECT pg_advisory_lock({LOCK})")
        change_schema(own, GATE.format(lock=LOCK, event_type=self._id))

    def wait_for_one(self) -> None:
        eventually(lambda: self._row(AT_THE_GATE) != (0,), "a commit waits")

    def open(self) -> None:
        self._own.execute(f"SELECT pg_advisory_unlock({LOCK})")
        eventually(lambda: self._row(AT_THE_GATE) == (0,), "no commit waits")

    def stored(self) -> int:
        (count,) = self._row(
            "SELECT count(*) FROM delivery_message WHERE event_type_id = %s", self._id
        )
        assert isinstance(count, int)
        return count

    def remove(self) -> None:
        self._own.execute("SELECT pg_advisory_unlock_all()")
        change_schema(self._own, "DROP FUNCTION test_gate CASCADE")

    def _row(self, text: str, *values: object) -> tuple[object, ...]:
        row: tuple[object, ...] | None = self._own.execute(text.encode(), values).fetchone()
        assert row is not None
        return row


@contextmanager
def gate(flow: Flow) -> Iterator[Gate]:
    with flow.product.connect() as own:
        closed = Gate(own, flow.event_type)
        try:
            yield closed
        finally:
            closed.remove()
