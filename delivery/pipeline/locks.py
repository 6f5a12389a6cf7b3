"""The advisory locks of the pipeline.

A request's lock lasts until the transaction ends, the others as long as their connection.
"""

import zlib
from contextlib import suppress
from typing import Any

import psycopg

# The upper half of the keys, distinct from those in `delivery.models.lane`,
# `delivery.history.archive.ledger` and `delivery.history.postgres.window`; the lower half is a
# run's id, or the checksum of a step's name.
RUN_LOCKS = 0x494E0005
STEP_LOCKS = 0x494E0006
REQUEST_LOCKS = 0x494E000A


def run_lock(id: int) -> int:
    """Return the key of the lock held by a run's process while the run is RUNNING."""
    return RUN_LOCKS << 32 | id


def step_lock(step: str) -> int:
    """Return the key of the lock on the connection on which a step of SOLE_STEPS commits."""
    return STEP_LOCKS << 32 | zlib.crc32(step.encode())


def request_lock(step: str) -> int:
    """Return the key of the lock under which `request_distinct_run` looks for runs of the step."""
    return REQUEST_LOCKS << 32 | zlib.crc32(step.encode())


def is_taken(database: psycopg.Connection[Any], key: int) -> bool:
    """Try to take a lock until the connection ends; False if another connection has it."""
    row = database.execute("SELECT pg_try_advisory_lock(%s)", [key]).fetchone()
    return row is not None and bool(row[0])


def release_locks(database: psycopg.Connection[Any]) -> None:
    """Release the connection's locks before it is closed.

    The server ends a closed connection a moment later, when the next run may have begun.
    """
    with suppress(psycopg.Error):
        database.execute("SELECT pg_advisory_unlock_all()")
