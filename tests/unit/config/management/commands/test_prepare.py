"""`prepare` gives way to statements on its tables, and knows databases of other versions."""

import io

import psycopg
import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client

from config.management.commands import prepare
from config.web import health
from delivery.database.connections import connection_parameters
from delivery.database.versions import require_this_version
from tests.unit.delivery.api.client import ApiAnswer, refused


class Releasing(io.StringIO):
    """An output that ends the other session's transaction with its first line."""

    def __init__(self, other: psycopg.Connection) -> None:
        super().__init__()
        self._other = other

    def write(self, text: str) -> int:
        self._other.rollback()
        return super().write(text)


@pytest.fixture
def migrating(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prepare, "LOCK_TIMEOUT_SECONDS", 0.05)
    monkeypatch.setattr(prepare, "LOCK_PAUSE_SECONDS", 0)


@pytest.mark.usefixtures("migrating")
@pytest.mark.django_db(transaction=True)
def test_migrating_gives_way_while_a_table_is_in_use() -> None:
    with psycopg.connect(**connection_parameters()) as other:
        other.execute("LOCK TABLE django_migrations")
        reported = Releasing(other)
        prepare.Command(stdout=reported)._migrate()
    assert reported.getvalue() == "a table to migrate is in use: trying again\n"


@pytest.mark.usefixtures("migrating")
@pytest.mark.django_db(transaction=True)
def test_a_table_that_stays_in_use_ends_it_with_advice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prepare, "LOCK_ATTEMPTS", 2)
    with psycopg.connect(**connection_parameters()) as other:
        other.execute("LOCK TABLE django_migrations")
        with pytest.raises(CommandError, match="pg_stat_activity"):
            prepare.Command(stdout=io.StringIO())._migrate()
    with connection.cursor() as cursor:
        cursor.execute("SHOW lock_timeout")
        assert cursor.fetchone() == ("0",)


@pytest.fixture
def newer(db: None) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO django_migrations (app, name, applied) "
            "VALUES ('delivery', '9999_tomorrow', now())"
        )


@pytest.mark.usefixtures("newer")
@pytest.mark.parametrize("command", ["migrate", "qcluster"])
def test_older_code_refuses_a_newer_database(command: str) -> None:
    with pytest.raises(CommandError) as reported:
        call_command(command)
    assert "of a newer version of Inturn, with the migration delivery.9999_tomorrow" in str(
        reported.value
    )
    assert "restore a back-up" in str(reported.value)


@pytest.mark.usefixtures("newer")
def test_a_web_server_on_a_newer_database_is_not_ready() -> None:
    health._require_migrations.cache_clear()
    refused(ApiAnswer(Client().get("/readyz")), 503, "newer-database")


@pytest.mark.django_db
def test_senders_refuse_a_database_without_all_migrations() -> None:
    require_this_version()
    with connection.cursor() as cursor:
        cursor.execute(
            "DELETE FROM django_migrations WHERE app = 'delivery' AND name <> '0001_initial'"
        )
    with pytest.raises(CommandError, match="has no migration"):
        require_this_version()
