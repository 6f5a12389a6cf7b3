"""A run of verify in tests: its rows, its result, and its findings."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from django.utils import timezone
from pyspark.sql import SparkSession

from delivery.history.archive.proof import DeliverySet, HistoryProof
from delivery.history.schemas import TABLES
from delivery.history.steps.verify import verify_history
from delivery.models import Finding, PipelineRun, RunState, Step
from tests.unit.delivery.history.archived import (
    RecordedProgress,
    attempt,
    delivery,
    job,
    message,
    seconds,
)

# After the day of `AT`.
PROVEN_UNTIL = seconds(200_000)
PROOF = HistoryProof(
    run_id=1,
    until=PROVEN_UNTIL,
    snapshot="20:30:22,25",
    rows={table.name: 0 for table in TABLES},
    unarchived=DeliverySet(),
)
Found = tuple[str, int | None, int | None, int | None]


def verified(
    url: Path, spark: SparkSession, reported: RecordedProgress | None = None, *, whole: bool = False
) -> dict[str, Any]:
    """Verify as a run that ends as DONE, and return its result."""
    run = PipelineRun.objects.create(step=Step.VERIFY, state=RunState.RUNNING)
    with job(url, spark=spark, run_id=run.pk, progress=reported) as given:
        result = verify_history(given, whole=whole)
    PipelineRun.objects.filter(pk=run.pk).update(
        state=RunState.DONE, result=result, ended_at=timezone.now()
    )
    return result


def found() -> list[Found]:
    return [
        (row.kind, row.message_id, row.delivery_id, row.other_delivery_id)
        for row in Finding.objects.order_by("kind", "delivery_id")
    ]


def check(result: dict[str, Any], kind: str) -> dict[str, Any]:
    (check,) = [check for check in result["checks"] if check["kind"] == kind]
    return dict(check)


def sound_rows(ids: Sequence[int]) -> dict[str, Any]:
    return {
        "messages": [message(id) for id in ids],
        "deliveries": [delivery(id) for id in ids],
        "attempts": [attempt(id) for id in ids],
    }
