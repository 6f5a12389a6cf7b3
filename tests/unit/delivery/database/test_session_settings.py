"""Every connection makes the promised settings, whatever the database's own defaults are."""

import asyncio
from collections.abc import Iterator

import psycopg
import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from psycopg import sql
from psycopg.conninfo import make_conninfo

from delivery.database.connections import connect_notifier, connect_sender, connection_parameters
from delivery.database.required_settings import database_refusals, database_warnings
from delivery.database.session_settings import OTHERS, PROMISED
from delivery.history.postgres.source import open_reader
from delivery.history.postgres.window import open_snapshot
from delivery.management.doctor.findings import Severity
from delivery.management.doctor.installation import check_database
from delivery.pipeline import settings as pipeline_settings

HOSTILE = {
    "synchronous_commit": "off",
    "default_transaction_isolation": "serializable",
    "standard_conforming_strings": "off",
    "datestyle": "SQL, DMY",
    "intervalstyle": "iso_8601",
    "timezone": "Asia/Kolkata",
    "bytea_output": "escape",
    "extra_float_digits": "0",
    "statement_timeout": "3s",
    "lock_timeout": "500ms",
    "idle_in_transaction_session_timeout": "2s",
    "idle_session_timeout": "4s",
    "transaction_timeout": "9s",
}

pytestmark = pytest.mark.django_db(transaction=True)


def set_defaults(values: dict[str, str]) -> None:
    """Set defaults of this role in this database; sessions that begin later have them."""
    name = sql.Identifier(connection.settings_dict["NAME"])
    with psycopg.connect(**connection_parameters(), autocommit=True) as own:
        for setting, value in values.items():
            own.execute(
                sql.SQL("ALTER ROLE CURRENT_USER IN DATABASE {} SET {} = {}").format(
                    name, sql.Identifier(setting), sql.SQL(value if "," in value else f"'{value}'")
                )
            )


def reset_defaults() -> None:
    name = sql.Identifier(connection.settings_dict["NAME"])
    with psycopg.connect(**connection_parameters(), autocommit=True) as own:
        own.execute(sql.SQL("ALTER ROLE CURRENT_USER IN DATABASE {} RESET ALL").format(name))
    connection.close()


@pytest.fixture
def hostile() -> Iterator[None]:
    connection.close()
    set_defaults(HOSTILE)
    try:
        yield
    finally:
        reset_defaults()


def others(own: psycopg.Connection) -> dict[str, str]:
    return dict(own.execute(OTHERS).fetchall())


@pytest.mark.usefixtures("hostile")
def test_the_hostile_database_has_no_promised_setting_of_its_own() -> None:
    with psycopg.connect(**connection_parameters()) as own:
        assert others(own).keys() == PROMISED.keys()


@pytest.mark.usefixtures("hostile")
def test_django_s_connection_has_the_promised_settings() -> None:
    with connection.cursor() as cursor:
        cursor.execute(OTHERS)
        assert cursor.fetchall() == []


@pytest.mark.usefixtures("hostile")
def test_a_sender_s_connection_has_the_promised_settings() -> None:
    async def read() -> list[tuple[str, str]]:
        async with await connect_sender("test") as own:
            return await (await own.execute(OTHERS)).fetchall()

    assert asyncio.run(read()) == []


@pytest.mark.usefixtures("hostile")
def test_a_connection_beside_django_has_the_promised_settings() -> None:
    with connect_notifier() as own:
        assert others(own) == {}


@pytest.mark.usefixtures("hostile")
def test_the_export_s_connections_have_the_promised_settings() -> None:
    conninfo = pipeline_settings.conninfo("test")
    with open_snapshot(conninfo) as seen:
        assert others(seen.connection) == {}
        with open_reader(conninfo=conninfo, snapshot=seen.name) as read:
            import pyarrow as pa

            schema = pa.schema([("name", pa.string()), ("value", pa.string())])
            rows = [row for batch in read(OTHERS, schema) for row in batch.to_pylist()]
    assert rows == []


@pytest.mark.parametrize("value", ["local", "remote_write", "remote_apply"])
def test_a_commit_that_waits_for_the_disk_otherwise_stays_as_it_is(value: str) -> None:
    connection.close()
    set_defaults({"synchronous_commit": value})
    try:
        with connection.cursor() as cursor:
            cursor.execute("SHOW synchronous_commit")
            assert cursor.fetchone() == (value,)
    finally:
        reset_defaults()


def test_prepare_refuses_a_pooler_that_does_not_keep_settings() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SET synchronous_commit = off")
    try:
        with pytest.raises(CommandError, match=r"synchronous_commit is off .* pool by session"):
            call_command("prepare")
        assert check_database().severity is Severity.FAILED
    finally:
        connection.close()


def test_doctor_names_a_server_that_writes_unsafely() -> None:
    """The tests' own server has fsync off."""
    assert [*database_refusals()] == []
    assert "fsync" in next(database_warnings())
    found = check_database()
    assert found.severity is Severity.FAILED
    assert "postgresql.conf" in found.advice


@pytest.mark.parametrize("encoding", ["LATIN1", "SQL_ASCII"])
def test_a_database_of_another_encoding_is_refused_first(
    encoding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"encoded_{encoding.lower()}_{connection.settings_dict['NAME']}"
    with psycopg.connect(**connection_parameters(), autocommit=True) as own:
        own.execute(
            sql.SQL(
                "CREATE DATABASE {} TEMPLATE template0 ENCODING {} "
                "LOCALE_PROVIDER libc LC_COLLATE 'C' LC_CTYPE 'C'"
            ).format(sql.Identifier(name), encoding)
        )
        try:
            connection.close()
            monkeypatch.setitem(connection.settings_dict, "NAME", name)
            with pytest.raises(CommandError, match=rf"encoding is {encoding}.* ENCODING 'UTF8'"):
                call_command("prepare")
            with psycopg.connect(make_conninfo(**connection_parameters())) as there:
                found = there.execute("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'")
                assert found.fetchone() == (0,)
        finally:
            connection.close()
            monkeypatch.undo()
            own.execute(sql.SQL("DROP DATABASE {}").format(sql.Identifier(name)))
