"""A pool executes one batch at a time, unless one lasts long."""

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait

import pytest

from subscriptions.scripts.jobs import Job
from subscriptions.scripts.pool import ScriptPool, ScriptResult
from tests.unit.subscriptions.script_runs import job, made, run


@pytest.fixture
def pool() -> Iterator[ScriptPool]:
    pool = ScriptPool()
    yield pool
    pool.close()


def begun(pool: ScriptPool, jobs: Sequence[Job]) -> Future[list[ScriptResult]]:
    """Submit the first batch of a pool, and return when it has begun."""
    future = pool.run(jobs, seconds=60)
    while not pool.workers:
        time.sleep(0.001)
    return future


def test_batches_are_executed_one_at_a_time(
    pool: ScriptPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("subscriptions.scripts.pool.TURN_SECONDS", 60)
    many = begun(pool, [job("$outmessage = 1;")] * 200)
    outcome = pool.run([job("$outmessage = 2;")], seconds=60)
    wait([many, outcome], return_when=FIRST_COMPLETED)
    assert many.done()
    assert len(outcome.result()) == 1


def test_a_batch_that_lasts_does_not_hold_up_the_next(
    pool: ScriptPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("subscriptions.scripts.pool.TURN_SECONDS", 0.01)
    many = begun(pool, [job("$outmessage = 1;")] * 20_000)
    assert made(run(pool, "$outmessage = 2;")).body == b"2"
    # Once the batch is known to last, the next ones do not wait for it at all.
    monkeypatch.setattr("subscriptions.scripts.pool.TURN_SECONDS", 60)
    assert made(run(pool, "$outmessage = 3;")).body == b"3"
    assert not many.done()
    assert len(many.result()) == 20_000
