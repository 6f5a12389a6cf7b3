"""Connections of our own beside Django's: for the senders, and for notifications."""

from typing import Any

import psycopg
from django.db import connection

# One channel for all senders; the first word of a payload says what it is about.
CHANNEL = "inturn"
# A dead server is noticed within about ten seconds even when its machine vanished.
_KEEPALIVE = {"connect_timeout": 5, "keepalives_idle": 5, "keepalives_interval": 2, "keepalives_count": 3}
# Plans must not depend on statistics that a young or busy table does not have yet: left to
# itself, PostgreSQL settles one delivery by reading all of a table that it takes to be short.
_WALK_INDEXES = """
    SET enable_seqscan = off;
    SET enable_hashjoin = off;
    SET enable_mergejoin = off;
    SET plan_cache_mode = force_generic_plan;
"""


def connection_parameters() -> dict[str, Any]:
    """Return libpq parameters for the database that Django uses."""
    settings = connection.settings_dict
    named = {
        "host": settings["HOST"],
        "port": settings["PORT"],
        "user": settings["USER"],
        "password": settings["PASSWORD"],
        "dbname": settings["NAME"],
    }
    return {name: value for name, value in named.items() if value} | _KEEPALIVE


async def connect(application_name: str) -> psycopg.AsyncConnection:
    """Connect as a sender does: each statement is a transaction, prepared once, and walks indexes."""
    connection = await psycopg.AsyncConnection.connect(
        **connection_parameters(), autocommit=True, application_name=application_name
    )
    await connection.execute(_WALK_INDEXES)
    connection.prepare_threshold = 0
    return connection
