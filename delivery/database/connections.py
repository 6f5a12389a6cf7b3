"""Connections to the database other than Django's, and the channels of notifications."""

from typing import Any

import psycopg
from django.db import connection
from django.db.backends.base.base import BaseDatabaseWrapper
from psycopg import pq
from psycopg.abc import RV, PQGen
from psycopg.errors import ReadOnlySqlTransaction
from psycopg.rows import Row

from delivery.database.session_settings import SESSION

# A channel for all senders; the first word of a payload names its subject.
CHANNEL = "inturn"
# A channel for all web servers with waiting clients: ids of subscribers with new messages, as
# `12,34`.
MAILBOX_CHANNEL = "inturn_mailboxes"
# The server in turn releases the locks of a vanished machine within about ten seconds.
TCP_TIMEOUTS = """
    SET tcp_keepalives_idle = 5;
    SET tcp_keepalives_interval = 2;
    SET tcp_keepalives_count = 3;
    SET tcp_user_timeout = '10s';
"""
# Errors after which the same may succeed later: the server does not answer, or accepts no changes,
# as while a standby answers instead. See `subscriptions.database_away` for Django's errors.
AWAY = (psycopg.OperationalError, psycopg.InterfaceError, ReadOnlySqlTransaction)
# The longest wait needed by psycopg's interface; a cancellation ends it.
WAIT_SECONDS = 3600.0


def connection_parameters() -> dict[str, Any]:
    """Return libpq parameters for Django's database, including TLS and detection of lost hosts."""
    parameters = connection.get_connection_params()
    keywords = {default.keyword.decode() for default in pq.Conninfo.get_defaults()}
    return {name: value for name, value in parameters.items() if name in keywords}


def make_session(*, connection: BaseDatabaseWrapper, **_: Any) -> None:
    """Make the promised settings of a new connection of Django's, before anything uses it."""
    connection.connection.execute(SESSION)


def connect_notifier() -> psycopg.Connection:
    """Connect beside Django, to send notifications; each statement is a transaction."""
    connection = psycopg.connect(
        **connection_parameters(), autocommit=True, application_name="inturn notifier"
    )
    connection.execute(SESSION)
    return connection


class PatientConnection(psycopg.AsyncConnection[Row]):
    """A connection whose calls wait for the server without looking for interrupts.

    psycopg looks ten times a second whether the program was interrupted. A coroutine is cancelled
    instead, and a sender listens for notifications all the time: it was most of the idle work. So
    `interval` is ignored.
    """

    async def wait(
        self, gen: PQGen[RV], interval: float = WAIT_SECONDS, timeout: float | None = None
    ) -> RV:
        return await super().wait(gen, interval=WAIT_SECONDS, timeout=timeout)


async def connect_sender(application_name: str) -> psycopg.AsyncConnection:
    """Connect as a sender does: each statement is a transaction, and is prepared once."""
    connection = await PatientConnection.connect(
        **connection_parameters(), autocommit=True, application_name=application_name
    )
    await connection.execute(f"{SESSION};{TCP_TIMEOUTS}".encode())
    connection.prepare_threshold = 0
    return connection


async def may_write() -> bool:
    """Return whether a new connection can change data now."""
    try:
        async with await connect_sender("inturn") as sender_connection:
            cursor = await sender_connection.execute(
                "SELECT NOT current_setting('transaction_read_only')::boolean"
            )
            return await cursor.fetchone() == (True,)
    except psycopg.Error:
        return False
