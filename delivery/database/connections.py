"""Connections to the database other than Django's, and the channels of its notifications."""

from typing import Any

import psycopg
from django.db import connection
from psycopg import pq
from psycopg.errors import ReadOnlySqlTransaction

# One channel for all senders; the first word of a payload names its subject.
CHANNEL = "inturn"
# One for all web servers where clients wait: ids of subscribers with new messages, as `12,34`.
MAILBOX_CHANNEL = "inturn_mailboxes"
# The server in turn releases the locks of a machine that vanished within about ten seconds.
TCP_TIMEOUTS = """
    SET tcp_keepalives_idle = 5;
    SET tcp_keepalives_interval = 2;
    SET tcp_keepalives_count = 3;
    SET tcp_user_timeout = '10s';
"""
# Errors after which the same may succeed later: the server does not answer, or accepts no changes,
# as while a standby answers in its place. See `subscriptions.database_away` for Django's errors.
AWAY = (psycopg.OperationalError, psycopg.InterfaceError, ReadOnlySqlTransaction)


def connection_parameters() -> dict[str, Any]:
    """Return libpq parameters for Django's database, including TLS and detection of lost hosts."""
    parameters = connection.get_connection_params()
    keywords = {default.keyword.decode() for default in pq.Conninfo.get_defaults()}
    return {name: value for name, value in parameters.items() if name in keywords}


async def connect_sender(application_name: str) -> psycopg.AsyncConnection:
    """Connect as a sender does: each statement is a transaction, and is prepared once."""
    connection = await psycopg.AsyncConnection.connect(
        **connection_parameters(), autocommit=True, application_name=application_name
    )
    await connection.execute(TCP_TIMEOUTS)
    connection.prepare_threshold = 0
    return connection


async def may_write() -> bool:
    """Return whether a new connection can change data now."""
    try:
        async with await connect_sender("inturn") as one:
            cursor = await one.execute(
                "SELECT NOT current_setting('transaction_read_only')::boolean"
            )
            return await cursor.fetchone() == (True,)
    except psycopg.Error:
        return False
