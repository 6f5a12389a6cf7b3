"""Connections of our own beside Django's: for the senders, and for notifications."""

from typing import Any

import psycopg
from django.db import connection
from psycopg import pq

# One channel for all senders; the first word of a payload says what it is about.
CHANNEL = "inturn"
# A dead server is noticed within about ten seconds even when its machine vanished.
_KEEPALIVE = {"connect_timeout": 5, "keepalives_idle": 5, "keepalives_interval": 2, "keepalives_count": 3}
# Plans must not depend on statistics that a young or busy table does not have yet: left to
# itself, PostgreSQL settles one delivery by reading all of a table that it takes to be short.
# The server in turn lets go of the locks of a machine that vanished within about ten seconds.
_SESSION = """
    SET enable_seqscan = off;
    SET enable_hashjoin = off;
    SET enable_mergejoin = off;
    SET plan_cache_mode = force_generic_plan;
    SET tcp_keepalives_idle = 5;
    SET tcp_keepalives_interval = 2;
    SET tcp_keepalives_count = 3;
    SET tcp_user_timeout = '10s';
"""


def connection_parameters() -> dict[str, Any]:
    """Return libpq parameters for the database that Django uses, TLS and all."""
    parameters = connection.get_connection_params()
    known = {default.keyword.decode() for default in pq.Conninfo.get_defaults()}
    return {name: value for name, value in parameters.items() if name in known} | _KEEPALIVE


async def connect(application_name: str) -> psycopg.AsyncConnection:
    """Connect as a sender does: each statement is a transaction, prepared once, and walks indexes."""
    connection = await psycopg.AsyncConnection.connect(
        **connection_parameters(), autocommit=True, application_name=application_name
    )
    await connection.execute(_SESSION)
    connection.prepare_threshold = 0
    return connection
