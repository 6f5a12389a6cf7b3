"""The embedded PostgreSQL: the account with which Inturn connects, and the server's log."""

from pathlib import Path

import psycopg
import pytest
from psycopg import errors

from config.embedded.cluster import DATABASE, OWNER, SUPERUSER, execute_statements
from config.embedded.postgres import THROWAWAY, Server
from config.embedded.programs import PostgresError, find_account, find_programs
from tests.system.operation.test_refusals import refusal

MARKER = "never-to-be-in-a-log"

# Objects of an earlier version, created by the superuser that it connected as.
OBJECTS = """
    CREATE TABLE kept (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, number serial, value text NOT NULL
    );
    INSERT INTO kept (value) VALUES ('here');
    CREATE SEQUENCE counter;
    CREATE VIEW seen AS SELECT value FROM kept;
    CREATE TYPE shade AS ENUM ('light', 'dark');
    CREATE FUNCTION touched() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
    CREATE TRIGGER touching BEFORE UPDATE ON kept FOR EACH ROW EXECUTE FUNCTION touched();
"""
BEFORE = """
    GRANT ALL ON SCHEMA public TO inturn_owner;

    REASSIGN OWNED BY inturn_owner TO inturn;

    DROP OWNED BY inturn_owner CASCADE;

    DROP ROLE inturn_owner;

    ALTER ROLE inturn PASSWORD '{password}';
"""


def log_of(server: Server) -> str:
    return (server.cluster.folder.parent / "logs" / "postgresql.log").read_text()


def test_inturn_owns_its_database_and_can_run_no_program(server: Server) -> None:
    with psycopg.connect(server.start(), autocommit=True) as connection:
        row = connection.execute(
            "SELECT rolsuper FROM pg_roles WHERE rolname = current_user"
        ).fetchone()
        assert row == (False,)
        connection.execute("CREATE TABLE made (id int)")
        with pytest.raises(errors.InsufficientPrivilege):
            connection.execute("COPY made FROM PROGRAM 'echo 1'")
        with pytest.raises(errors.InsufficientPrivilege):
            connection.execute("SELECT pg_read_file('/etc/passwd')")


def test_the_superuser_cannot_connect(server: Server) -> None:
    url = server.start()
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(url.replace(OWNER, SUPERUSER, 1))


def test_the_owner_gets_a_folder_of_an_earlier_version(server: Server) -> None:
    with psycopg.connect(server.start(), autocommit=True) as connection:
        connection.execute(OBJECTS)
    server.stop()
    make_earlier(server)
    # Found by its URL as long as the earlier version runs.
    assert f"//{SUPERUSER}:" in server.cluster.url()
    with psycopg.connect(server.start(), autocommit=True) as connection:
        assert connection.execute(
            "INSERT INTO kept (value) VALUES ('too') RETURNING id"
        ).fetchone() == (2,)
        assert connection.execute("SELECT value FROM seen").fetchall() == [("here",), ("too",)]
        for change in (
            "ALTER TABLE kept ADD COLUMN more text",
            "ALTER SEQUENCE counter RESTART WITH 7",
            "ALTER TYPE shade ADD VALUE 'none'",
            "DROP VIEW seen",
            (
                "CREATE OR REPLACE FUNCTION touched() RETURNS trigger LANGUAGE plpgsql "
                "AS 'BEGIN RETURN NULL; END'"
            ),
            f"ALTER DATABASE {DATABASE} SET work_mem = '5MB'",
        ):
            connection.execute(change)


def make_earlier(server: Server) -> None:
    """Change it to an earlier version's state: the superuser owns all objects, with a password."""
    folder = server.cluster.folder
    statements = BEFORE.format(password=(folder / "password").read_text())
    execute_statements(statements, find_account(), find_programs(), data=server.cluster.data)
    (folder / "owner").unlink()


@pytest.mark.parametrize(
    "refused",
    [
        "INSERT INTO kept VALUES (1, '{marker}')",
        "INSERT INTO kept VALUES (NULL, '{marker}')",
        "INSERT INTO kept VALUES (-1, '{marker}')",
        "SELECT '{marker}' FROM nowhere",
    ],
)
def test_a_refused_statements_values_are_not_in_the_log(server: Server, refused: str) -> None:
    with psycopg.connect(server.start(), autocommit=True) as connection:
        connection.execute(
            "CREATE TABLE kept (id int PRIMARY KEY CHECK (id > 0), value text UNIQUE)"
        )
        connection.execute("INSERT INTO kept VALUES (1, %s)", [MARKER])
        # As Django does: the values are in the statement.
        with psycopg.ClientCursor(connection) as cursor, pytest.raises(psycopg.Error):
            cursor.execute(refused.replace("'{marker}'", "%s").encode(), [MARKER])
    server.stop()
    assert "ERROR:" in log_of(server)
    assert MARKER not in log_of(server)


def test_another_major_version_does_not_start_empty_beside_the_data(
    server: Server, tmp_path: Path
) -> None:
    server.start()
    server.stop()
    older = server.cluster.folder.rename(server.cluster.folder.with_name("postgresql-9"))
    newer = Server(tmp_path / "home", settings=THROWAWAY)
    with pytest.raises(
        PostgresError, match=f"the data in {older} is not of PostgreSQL {find_programs().major}"
    ):
        newer.start()
    assert not newer.cluster.folder.exists()
    older.rename(newer.cluster.folder)
    newer.start()
    newer.stop()


def test_up_reports_data_of_another_major_version_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "postgresql-9" / "data").mkdir(parents=True)
    reported = refusal(tmp_path, "up")
    assert reported.startswith(
        f"inturn: the data in {tmp_path / 'postgresql-9'} is not of PostgreSQL "
    )
    assert reported.count("\n") == 1
