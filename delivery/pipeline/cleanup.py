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
    """End the runs whose process is gone: FAILED, or CANCELLED if a person stopped them before.

    Returns their number. A process takes the run's lock before the run is RUNNING.
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
        return runs.end_run(run, _killed(run), now=now)


def _killed(run: PipelineRun) -> runs.Ending:
    # Under the lock, because a person may have stopped it since.
    run.refresh_from_db(fields=["is_stopping"])
    if run.is_stopping:
        return runs.Ending(state=RunState.CANCELLED)
    return runs.Ending(state=RunState.FAILED, error=KILLED)


def return_killed_run(id: int) -> bool:
    """Return a run to WAITING whose process we have killed because Inturn stops.

    False if a person stopped it, it has ended, or the server still holds the lock after a second.
    """
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL lock_timeout = '1s'")
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [run_lock(id)])
        return runs.give_back(PipelineRun(pk=id), reason="Inturn stops, and it did not react.")


def _is_free(key: int) -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [key])
        row = cursor.fetchone()
    return row is not None and bool(row[0])
