"""Tidying up after runs: those that were killed are told so, and old ones forgotten, with their reports."""

from datetime import datetime, timedelta

from django.db import connection, transaction

from delivery.models import RUN_ENDED, PipelineRun, RunState
from delivery.pipeline import runs, settings
from delivery.pipeline.locks import run_lock

KEPT = timedelta(days=90)
# These stay however old they are.
KEPT_RUNS = 1000

KILLED = "It was killed, or lost the database. Unfinished work does not count; the next run continues after the finished part."


def tidy(now: datetime) -> int:
    """End the runs whose process is gone, and return how many. Who begins one holds its lock before it is RUNNING."""
    return sum(_end_if_killed(run, now=now) for run in PipelineRun.objects.filter(state=RunState.RUNNING))


def forget(now: datetime) -> int:
    """Remove what ended long ago, with its findings, but for the newest; return how many runs."""
    newest = PipelineRun.objects.order_by("-id").values("id")[:KEPT_RUNS]
    old = PipelineRun.objects.filter(state__in=RUN_ENDED, ended_at__lt=now - KEPT)
    _, removed = old.exclude(id__in=list(newest.values_list("id", flat=True))).delete()
    return removed.get(PipelineRun._meta.label, 0)


def forget_reports(now: datetime) -> int:
    """Remove the reports that this machine wrote long ago; return how many."""
    old = [file for file in settings.reports().glob("*") if file.stat().st_mtime < (now - KEPT).timestamp()]
    for file in old:
        file.unlink(missing_ok=True)
    return len(old)


def _end_if_killed(run: PipelineRun, *, now: datetime) -> bool:
    with transaction.atomic():
        if not _is_free(run_lock(run.pk)):
            return False
        return runs.end(run, runs.Ending(state=RunState.FAILED, error=KILLED), now=now)


def _is_free(key: int) -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [key])
        row = cursor.fetchone()
    return row is not None and bool(row[0])
