"""Indexes that migrations build beside writers, while a transaction is open elsewhere."""

import threading
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from django.apps import apps
from django.db import connection, models
from django.db.migrations.state import ProjectState

from delivery.database.connections import connection_parameters
from subscriptions.concurrent_indexes import (
    AddPartitionedIndexConcurrently,
    ResumableAddIndexConcurrently,
    ResumableRemoveIndexConcurrently,
)
from tests.system.operation.installation import eventually

pytestmark = pytest.mark.django_db(transaction=True)

INDEX = "names_beside"
OPERATION = ResumableAddIndexConcurrently("publisher", models.Index(fields=["name"], name=INDEX))
PARTITIONED = AddPartitionedIndexConcurrently(
    table="numbers", name="even_numbers", definition="(id) WHERE is_even"
)


@pytest.fixture(autouse=True)
def _no_index() -> Iterator[None]:
    yield
    with connection.cursor() as cursor:
        cursor.execute(f"DROP INDEX IF EXISTS {INDEX}")


def state() -> ProjectState:
    return ProjectState.from_apps(apps)


def build() -> None:
    before = state()
    after = before.clone()
    OPERATION.state_forwards("subscriptions", after)
    with connection.schema_editor(atomic=False) as editor:
        OPERATION.database_forwards("subscriptions", editor, before, after)


def remove() -> None:
    before = state()
    OPERATION.state_forwards("subscriptions", before)
    after = before.clone()
    removal = ResumableRemoveIndexConcurrently("publisher", INDEX)
    removal.state_forwards("subscriptions", after)
    with connection.schema_editor(atomic=False) as editor:
        removal.database_forwards("subscriptions", editor, before, after)


def is_valid() -> bool | None:
    """Return whether the index is valid; None if there is none."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass(%s)", [INDEX]
        )
        found = cursor.fetchone()
    return None if found is None else bool(found[0])


def lock_timeout() -> str:
    with connection.cursor() as cursor:
        cursor.execute("SHOW lock_timeout")
        text: str = cursor.fetchone()[0]
    return text


def is_waiting(observer: psycopg.Connection) -> bool:
    waiting = (
        "SELECT FROM pg_stat_activity WHERE datname = current_database()"
        " AND wait_event_type = 'Lock' AND query LIKE 'CREATE INDEX CONCURRENTLY%'"
    )
    return observer.execute(waiting).fetchone() is not None


def test_an_index_waits_for_old_transactions_longer_than_other_migrations_do() -> None:
    with (
        psycopg.connect(**connection_parameters()) as writer,
        psycopg.connect(**connection_parameters(), autocommit=True) as observer,
    ):
        writer.execute("UPDATE subscriptions_publisher SET name = name WHERE false")
        with connection.cursor() as cursor:
            cursor.execute("SET lock_timeout = '1ms'")

        def finish() -> None:
            eventually(lambda: is_waiting(observer), "the index waits")
            writer.commit()

        finishing = threading.Thread(target=finish)
        finishing.start()
        build()
        finishing.join()
    assert is_valid()
    assert lock_timeout() == "1ms"
    remove()
    assert is_valid() is None
    connection.close()


def test_an_index_that_was_left_unfinished_is_built_again() -> None:
    with psycopg.connect(**connection_parameters()) as writer:
        writer.execute("UPDATE subscriptions_publisher SET name = name WHERE false")
        with psycopg.connect(**connection_parameters(), autocommit=True) as builder:
            builder.execute("SET lock_timeout = '1ms'")
            statement = f"CREATE INDEX CONCURRENTLY {INDEX} ON subscriptions_publisher (name)"
            with pytest.raises(psycopg.errors.LockNotAvailable):
                builder.execute(statement)
    assert is_valid() is False
    build()
    assert is_valid()


def test_an_index_that_the_server_finished_after_the_migration_was_killed_is_kept() -> None:
    build()
    build()
    assert is_valid()


@pytest.fixture
def partitioned() -> Iterator[None]:
    """Two ranges and the rest; the build of their index was interrupted after the first one."""
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE TABLE numbers (id bigint, is_even boolean) PARTITION BY RANGE (id);"
            "CREATE TABLE numbers_rest PARTITION OF numbers DEFAULT;"
            "CREATE TABLE numbers_0 PARTITION OF numbers FOR VALUES FROM (0) TO (10);"
            "CREATE TABLE numbers_10 PARTITION OF numbers FOR VALUES FROM (10) TO (20);"
            "CREATE INDEX even_numbers ON ONLY numbers (id) WHERE is_even;"
            "CREATE INDEX numbers_0_even_numbers ON numbers_0 (id) WHERE is_even"
        )
        yield
        cursor.execute("DROP TABLE numbers")


def indexes_of_numbers() -> list[tuple[str, bool]]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT indexrelid::regclass::text, indisvalid FROM pg_index"
            " WHERE indrelid::regclass::text LIKE 'numbers%' ORDER BY 1"
        )
        rows: list[tuple[str, bool]] = cursor.fetchall()
    return rows


def test_an_index_of_partitions_is_finished_after_an_interruption(partitioned: None) -> None:
    states = state(), state()
    with connection.schema_editor(atomic=False) as editor:
        PARTITIONED.database_forwards("delivery", editor, *states)
        # A later partition gets it at once.
        editor.execute("CREATE TABLE numbers_20 PARTITION OF numbers FOR VALUES FROM (20) TO (30)")
        PARTITIONED.database_forwards("delivery", editor, *states)
    assert indexes_of_numbers() == [
        ("even_numbers", True),
        ("numbers_0_even_numbers", True),
        ("numbers_10_even_numbers", True),
        ("numbers_20_id_idx", True),
        ("numbers_rest_even_numbers", True),
    ]
    with connection.schema_editor(atomic=False) as editor:
        PARTITIONED.database_backwards("delivery", editor, *states)
    assert indexes_of_numbers() == []


def test_a_partition_that_retention_drops_meanwhile_is_left_out(
    partitioned: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    build_on = AddPartitionedIndexConcurrently._build_on

    def dropped_first(self: AddPartitionedIndexConcurrently, editor: Any, partition: str) -> None:
        if partition == "numbers_10":
            editor.execute("DROP TABLE numbers_10")
        build_on(self, editor, partition)

    monkeypatch.setattr(AddPartitionedIndexConcurrently, "_build_on", dropped_first)
    with connection.schema_editor(atomic=False) as editor:
        PARTITIONED.database_forwards("delivery", editor, state(), state())
    assert indexes_of_numbers() == [
        ("even_numbers", True),
        ("numbers_0_even_numbers", True),
        ("numbers_rest_even_numbers", True),
    ]
