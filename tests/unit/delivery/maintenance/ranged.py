"""Ranges of messages for tests: one begins with the next message, and ends where the test says."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection, transaction

from delivery.database import queries
from delivery.models import MessageRange


def go_on_from(message_id: int) -> None:
    """Make that the id of the next message."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT setval('delivery_message_id_seq', %s, false)", [message_id])


@contextmanager
def ids_put_back() -> Iterator[None]:
    """Restore the sequence of ids afterwards: a rollback does not."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT last_value FROM delivery_message_id_seq")
        row = cursor.fetchone()
    assert row is not None
    yield
    go_on_from(row[0])


@contextmanager
def range_of(size: int = 100, *, is_over: bool = True) -> Iterator[MessageRange]:
    """Yield a new range with the block's messages; if it `is_over`, later ones come after it."""
    newest = MessageRange.objects.latest("first_id")
    queries.execute_statement(
        "make_range", {"first": newest.until_id, "until": newest.until_id + size}
    )
    go_on_from(newest.until_id)
    yield MessageRange.objects.get(pk=newest.until_id)
    if is_over:
        go_on_from(newest.until_id + size + 1)
    check_constraints()


def check_constraints() -> None:
    """Check deferred constraints now: a table with pending checks cannot be dropped."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE; SET CONSTRAINTS ALL DEFERRED")


def is_there(of: MessageRange) -> bool:
    """Return whether the range still has its partitions."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT to_regclass(%s)", [f"delivery_message_{of.first_id}"])
        row = cursor.fetchone()
    has_table = row is not None and row[0] is not None
    assert has_table == MessageRange.objects.filter(pk=of.pk).exists()
    return has_table
