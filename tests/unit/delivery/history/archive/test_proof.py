"""A proof: when it counts, and when the archive no longer has its rows."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from pyspark.sql import SparkSession

from delivery.history.archive import ledger
from delivery.history.archive.proof import last_proof, row_counts
from delivery.history.job import StepJob
from delivery.history.schemas import TABLES
from delivery.history.steps.verify import verify_history
from delivery.models import (
    ArchiveChunk,
    Archived,
    ArchiveFile,
    ChunkKind,
    ChunkState,
    RunState,
    Step,
)
from tests.unit.delivery.history.archived import write
from tests.unit.delivery.history.verify_runs import PROOF, PROVEN_UNTIL, sound_rows
from tests.unit.delivery.pipeline import rows as runs


def _refuse() -> SparkSession:
    raise AssertionError("it started Spark")


@pytest.mark.django_db(transaction=True)
def test_a_run_without_anything_new_starts_no_spark(job: StepJob) -> None:
    job.start = _refuse
    runs.run(Step.VERIFY, RunState.DONE, result={"verdict": "proven", "proof": PROOF.as_json()})
    Archived.objects.create(pk=1, until=PROVEN_UNTIL + timedelta(hours=1))
    result = verify_history(job)
    assert (result["verdict"], result["deliveries"]) == ("proven", 0)
    assert result["proof"]["until"] == result["until"] != PROOF.until.isoformat()


@pytest.mark.django_db(transaction=True)
def test_only_the_newest_verification_leaves_a_proof(job: StepJob) -> None:
    assert last_proof(job.database) is None
    run = runs.run(Step.VERIFY, RunState.DONE, result={"proof": PROOF.as_json()})
    assert last_proof(job.database) == replace(PROOF, run_id=run.pk)
    runs.run(Step.VERIFY, RunState.FAILED)
    assert last_proof(job.database) == replace(PROOF, run_id=run.pk)
    other_rules = PROOF.as_json() | {"rules": 0}
    runs.run(Step.VERIFY, RunState.DONE, result={"proof": other_rules})
    assert last_proof(job.database) is None
    runs.run(Step.VERIFY, RunState.DONE, result={"verdict": "broken here"})
    assert last_proof(job.database) is None


def test_a_proof_does_not_hold_for_another_archive() -> None:
    none: dict[str, list[Any]] = {table.name: [] for table in TABLES}
    ones = {table.name: 1 for table in TABLES}
    assert PROOF.holds(none, until=PROVEN_UNTIL, added={})
    assert not PROOF.holds(none, until=None, added={})
    assert not PROOF.holds(none, until=PROVEN_UNTIL - timedelta(microseconds=1), added={})
    assert not PROOF.holds(none, until=PROVEN_UNTIL, added=ones)
    assert not replace(PROOF, rows=ones).holds(none, until=PROVEN_UNTIL, added={})


@pytest.mark.django_db(transaction=True)
def test_a_file_of_the_day_of_the_proof_is_missed(job: StepJob) -> None:
    job.start = _refuse
    write(job.archive.url, **sound_rows(range(1, 3)))
    now = Archived.objects.get().until
    proof = replace(PROOF, until=now, rows=rows_in_ledger(job))
    assert proof.rows["deliveries"] == 2
    runs.run(Step.VERIFY, RunState.DONE, result={"proof": proof.as_json()})
    assert verify_history(job)["verdict"] == "proven"
    # An export adds rows of the same day; a compaction moves rows, which are not counted again.
    chunk = write(job.archive.url, **sound_rows(range(3, 6)))
    ArchiveChunk.objects.create(
        kind=ChunkKind.COMPACTION,
        state=ChunkState.DONE,
        run_id=1,
        since=chunk.until,
        until=chunk.until,
        counts={"deliveries": 4},
        ended_at=chunk.until,
    )
    added = ledger.rows_since(job.database, now)
    assert added == {"messages": 3, "deliveries": 3, "attempts": 3, "journal": 0}
    assert rows_in_ledger(job) == {name: proof.rows[name] + added[name] for name in added}
    ArchiveFile.objects.filter(table="deliveries", rows=2).delete()
    assert rows_in_ledger(job)["deliveries"] == 3
    files = {table.name: ledger.files(job.database, table.name) for table in TABLES}
    assert not proof.holds(files, until=chunk.until, added=added)
    with pytest.raises(AssertionError, match="it started Spark"):
        verify_history(job)


def rows_in_ledger(job: StepJob) -> dict[str, int]:
    return row_counts({table.name: ledger.files(job.database, table.name) for table in TABLES})
