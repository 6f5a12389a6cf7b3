"""Checks whether a database can keep the promises: version, encoding, settings."""

import secrets
from collections.abc import Iterator

import psycopg
from django.db import connection

from delivery.database.connections import connection_parameters
from delivery.database.session_settings import OTHERS, PROMISED

OLDEST_VERSION = 15
_SERVER = """
    SELECT current_setting('server_version_num')::integer / 10000,
        current_setting('server_encoding'),
        current_setting('session_replication_role')
"""
_POOLER = "let the connection pooler pool by session (PgBouncer: pool_mode = session)"
_WRITES_SAFELY = (
    "SELECT current_setting('fsync')::boolean AND current_setting('full_page_writes')::boolean"
)


def database_refusals() -> Iterator[str]:
    """Yield a sentence for each reason why Inturn must not use Django's database, worst first."""
    with connection.cursor() as cursor:
        cursor.execute(_SERVER)
        version, encoding, replication_role = cursor.fetchone()
        cursor.execute(OTHERS)
        others = cursor.fetchall()
    if version < OLDEST_VERSION:
        yield (
            f"the server is PostgreSQL {version}, and Inturn needs {OLDEST_VERSION} or later: "
            "upgrade it, or set DATABASE_URL to another server"
        )
    if encoding != "UTF8":
        yield (
            f"the database's encoding is {encoding}, which cannot hold every message: create "
            "another database with CREATE DATABASE … TEMPLATE template0 ENCODING 'UTF8', and set "
            "DATABASE_URL to it"
        )
    if replication_role != "origin":
        yield (
            f"session_replication_role is {replication_role}, so that triggers do not run: "
            "let a superuser reset it for Inturn's role and database "
            "(ALTER ROLE … RESET session_replication_role)"
        )
    for name, value in others:
        yield f"{name} is {value} although Inturn has set it to {PROMISED[name]}: {_POOLER}"
    if not _has_sessions():
        yield f"two connections share a session, which breaks the locks of senders: {_POOLER}"


def _has_sessions() -> bool:
    """Return whether this connection keeps the session while another has a transaction."""
    token = secrets.token_hex(8)
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('inturn.session', %s, false)", [token])
        with psycopg.connect(**connection_parameters()) as other:
            # Begins the transaction, for which a pooler by transaction takes the session used last.
            other.execute("SELECT 1")
            cursor.execute("SELECT current_setting('inturn.session', true)")
            return bool(cursor.fetchone() == (token,))


def database_warnings() -> Iterator[str]:
    """Yield a sentence for each setting of the server by which a crash would lose messages."""
    with connection.cursor() as cursor:
        cursor.execute(_WRITES_SAFELY)
        (writes_safely,) = cursor.fetchone()
    if not writes_safely:
        yield (
            "the server has fsync or full_page_writes off, so a crash of its machine loses "
            "accepted messages or damages the database: set both to on in postgresql.conf"
        )
