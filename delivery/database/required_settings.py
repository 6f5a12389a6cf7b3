"""Checks whether a database can keep the promises: its version, its encoding, its settings."""

from collections.abc import Iterator

from django.db import connection

from delivery.database.session_settings import OTHERS, PROMISED

OLDEST_VERSION = 15
_SERVER = """
    SELECT current_setting('server_version_num')::integer / 10000,
        current_setting('server_encoding'),
        current_setting('session_replication_role')
"""
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
        yield (
            f"{name} is {value} although Inturn has set it to {PROMISED[name]}: a connection "
            "pooler must pool by session (PgBouncer: pool_mode = session)"
        )


def database_warnings() -> Iterator[str]:
    """Yield a sentence for each setting of the server that makes a crash lose messages."""
    with connection.cursor() as cursor:
        cursor.execute(_WRITES_SAFELY)
        (writes_safely,) = cursor.fetchone()
    if not writes_safely:
        yield (
            "the server has fsync or full_page_writes off, so a crash of its machine loses "
            "accepted messages or damages the database: set both to on in postgresql.conf"
        )
