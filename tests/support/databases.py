"""Databases created and dropped by a test alongside its own on the same server.

`DROP DATABASE … WITH (FORCE)` is refused while an autovacuum worker is connected to the database:
only a superuser, or a role that may signal such workers, can end it in this way. Without FORCE,
PostgreSQL asks the workers to leave and waits for them; only client sessions have to be ended.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg import sql

# The longest time for the end of a session.
MILLISECONDS = 20_000

_END = """
    SELECT pg_terminate_backend(pid, %s) FROM pg_stat_activity
    WHERE datname = %s AND backend_type = 'client backend' AND pid <> pg_backend_pid()
"""


@contextmanager
def database_beside(
    server: psycopg.Connection, name: str, *, template: str = "template1"
) -> Iterator[None]:
    """Create a database, and drop it on leaving, even if it is still in use.

    `server` is an autocommit connection to another database of the same server.
    """
    made = sql.SQL("CREATE DATABASE {} TEMPLATE {}")
    server.execute(made.format(sql.Identifier(name), sql.Identifier(template)))
    try:
        yield
    finally:
        drop_database(server, name)


def drop_database(server: psycopg.Connection, name: str) -> None:
    """Drop the database if it exists."""
    server.execute(_END, (MILLISECONDS, name))
    server.execute(sql.SQL("DROP DATABASE IF EXISTS {}").format(sql.Identifier(name)))
