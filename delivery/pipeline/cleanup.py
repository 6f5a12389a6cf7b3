"""Cleanup of runs: marks killed runs as FAILED, and removes old runs and reports."""

from datetime import datetime, timedelta

from django.db import connection, transaction

from delivery.models import RUN_ENDED, PipelineRun, RunState
from delivery.pipeline import runs, settings
from delivery.pipeline.locks import run_lock

KEPT = timedelta(days=90)
# The newest runs are kept whatever their age.
KEPT_RUNS = 1000

KILLED = (
    "It was killed, or lost the database. Unfinished work does not count; "
    "the next run continues after the finished part."
)


def end_orphaned_runs(now: datetime) -> int:
    """Mark the runs whose process is gone as FAILED; return their number.

    A process that begins a run takes its lock before the run is RUNNING.
    """
    return sum(
        _end_if_killed(run, now=now) for run in PipelineRun.objects.filter(state=RunState.RUNNING)
    )


def remove_old_runs(now: datetime) -> int:
    """Remove old runs with their findings, except the newest; return the number of runs."""
    newest = PipelineRun.objects.order_by("-id").values("id")[:KEPT_RUNS]
    old = PipelineRun.objects.filter(state__in=RUN_ENDED, ended_at__lt=now - KEPT)
    _, removed = old.exclude(id__in=list(newest.values_list("id", flat=True))).delete()
    return removed.get(PipelineRun._meta.label, 0)


def forget_reports(now: datetime) -> int:
    """Remove the old reports of this machine; return their number."""
    old = [
        file
        for file in settings.reports_folder().glob("*")
        if file.stat().st_mtime < (now - KEPT).timestamp()
    ]
    for file in old:
        file.unlink(missing_ok=True)
    return len(old)


def _end_if_killed(run: PipelineRun, *, now: datetime) -> bool:
    with transaction.atomic():
        if not _is_free(run_lock(run.pk)):
            return False
        return runs.end_run(run, runs.Ending(state=RunState.FAILED, error=KILLED), now=now)


def _is_free(key: int) -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [key])
        row = cursor.fetchone()
    return row is not None and bool(row[0])
