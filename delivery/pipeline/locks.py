"""The advisory locks of the pipeline, each held by a connection: what holds it is alive as long as that is."""

import zlib
from typing import Any

import psycopg

# The upper half of the keys, beside those in `delivery.models.lane`, `delivery.history.archive.ledger` and
# `delivery.history.postgres.window`; the lower is a run's id, or of a step's name.
RUN_LOCKS = 0x494E0005
STEP_LOCKS = 0x494E0006


def run_lock(id: int) -> int:
    """Held by the process that runs it, for as long as it is RUNNING."""
    return RUN_LOCKS << 32 | id


def step_lock(step: str) -> int:
    """Held by the connection that a step commits by, if it may run once at a time."""
    return STEP_LOCKS << 32 | zlib.crc32(step.encode())


def is_taken(database: psycopg.Connection[Any], key: int) -> bool:
    """Take a lock until the connection ends, unless another has it."""
    row = database.execute("SELECT pg_try_advisory_lock(%s)", [key]).fetchone()
    return row is not None and bool(row[0])
