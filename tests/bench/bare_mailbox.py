"""The bare loop to compare a mailbox with: connections take batches from a plain table.

It is a separate process, `python -m tests.bench.bare_mailbox CONNECTIONS BATCH`, without HTTP,
leases or history. Each connection deletes the taken rows.
"""

import sys
import threading
import time

import django
import psycopg

from tests.bench.drained import Drained

TABLE = "bench_mailbox"
# The table is a constant.
FETCH = f"SELECT id, body FROM {TABLE} ORDER BY id LIMIT %s FOR UPDATE SKIP LOCKED"  # noqa: S608
ACKNOWLEDGE = f"DELETE FROM {TABLE} WHERE id = ANY (%s)"  # noqa: S608


def drain(connections: int, batch: int) -> Drained:
    """Drain the table; each connection has a thread, which ends when the table is empty."""
    taken: list[int] = []
    ready = threading.Barrier(connections + 1)
    threads = [
        threading.Thread(target=_drain, args=(taken, ready, batch)) for _ in range(connections)
    ]
    for thread in threads:
        thread.start()
    ready.wait()
    began = time.monotonic()
    for thread in threads:
        thread.join()
    return Drained(seconds=time.monotonic() - began, acknowledged=sum(taken))


def _drain(taken: list[int], ready: threading.Barrier, batch: int) -> None:
    from delivery.database.connections import connection_parameters

    with psycopg.connect(**connection_parameters(), prepare_threshold=0) as connection:
        ready.wait()
        while ids := [row[0] for row in connection.execute(FETCH, (batch,))]:
            connection.execute(ACKNOWLEDGE, (ids,))
            connection.commit()
            taken.append(len(ids))


if __name__ == "__main__":
    django.setup()
    drain(int(sys.argv[1]), int(sys.argv[2])).say()
