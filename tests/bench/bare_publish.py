"""The bare transactions to compare publishing with, on two plain tables.

It is a separate process, `python -m tests.bench.bare_publish MESSAGES CONNECTIONS DELIVERIES
BATCH`, without HTTP, keys or matching; each connection commits transactions in turn, by a prepared
statement.
"""

import sys
import threading
import time

import django
import psycopg

from tests.bench.drained import Drained
from tests.bench.message import BODY

TABLES = """
    DROP TABLE IF EXISTS bench_delivery, bench_message;
    CREATE TABLE bench_message (
        id bigserial PRIMARY KEY, headers jsonb NOT NULL, body bytea NOT NULL,
        at timestamptz NOT NULL DEFAULT now()
    );
    CREATE TABLE bench_delivery (
        id bigserial PRIMARY KEY, message_id bigint NOT NULL, subscription_id bigint NOT NULL,
        status text NOT NULL
    );
    CREATE INDEX ON bench_delivery (message_id);
"""
STORE = """
    WITH stored AS (
        INSERT INTO bench_message (headers, body)
        SELECT '{"content-type": "application/json"}', body FROM unnest(%s::bytea[]) AS body
        RETURNING id
    )
    INSERT INTO bench_delivery (message_id, subscription_id, status)
    SELECT stored.id, subscription, 'PENDING' FROM stored, unnest(%s::bigint[]) AS subscription
"""


def store(messages: int, connections: int, deliveries: int, batch: int) -> Drained:
    """Store so many messages; each connection has a thread."""
    from delivery.database.connections import connection_parameters

    with psycopg.connect(**connection_parameters(), autocommit=True) as connection:
        connection.execute(TABLES)
    left = threading.Semaphore(messages // batch)
    ready = threading.Barrier(connections + 1)
    threads = [
        threading.Thread(target=_store, args=(left, ready, deliveries, batch))
        for _ in range(connections)
    ]
    for thread in threads:
        thread.start()
    ready.wait()
    began = time.monotonic()
    for thread in threads:
        thread.join()
    return Drained(seconds=time.monotonic() - began, acknowledged=messages)


def _store(
    left: threading.Semaphore, ready: threading.Barrier, deliveries: int, batch: int
) -> None:
    from delivery.database.connections import connection_parameters

    parameters = [BODY] * batch, list(range(deliveries))
    with psycopg.connect(
        **connection_parameters(), autocommit=True, prepare_threshold=0
    ) as connection:
        ready.wait()
        while left.acquire(blocking=False):
            connection.execute(STORE, parameters, binary=True)


if __name__ == "__main__":
    django.setup()
    store(*map(int, sys.argv[1:5])).say()
