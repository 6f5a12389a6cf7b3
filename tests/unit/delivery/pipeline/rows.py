"""Runs in every state, and connections that hold their locks."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import psycopg
from django.utils import timezone

from delivery.database.connections import connection_parameters
from delivery.models import RUN_ENDED, PipelineRun, Replay, RunState, Step
from delivery.pipeline.locks import is_taken, run_lock
from tests.support import factories


def run(step: Step = Step.EXPORT, state: RunState = RunState.WAITING, **fields: Any) -> PipelineRun:
    """Create a run whose state implies its times."""
    now = timezone.now()
    if state != RunState.WAITING:
        fields.setdefault("started_at", now - timedelta(seconds=30))
    if state in RUN_ENDED:
        fields.setdefault("ended_at", now)
    made = PipelineRun.objects.create(step=step, state=state, **fields)
    made.refresh_from_db()
    return made


def replay() -> Replay:
    now = timezone.now()
    return Replay.objects.create(
        subscription=factories.subscription(),
        since=now - timedelta(days=1),
        until=now,
        asked_by="ann",
    )


@contextmanager
def connected() -> Iterator[psycopg.Connection[Any]]:
    """Open a second connection, like another process."""
    with psycopg.connect(**connection_parameters(), autocommit=True) as connection:
        yield connection


@contextmanager
def held(run: PipelineRun) -> Iterator[None]:
    """Hold the run's lock within the block, as the process that runs it does."""
    with connected() as connection:
        assert is_taken(connection, run_lock(run.pk))
        yield
        # As the end of its connection does, a moment later.
        connection.execute("SELECT pg_advisory_unlock_all()")
