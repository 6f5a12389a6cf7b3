"""`history runs`: the newest runs of the pipeline, a line each."""

from collections.abc import Callable
from datetime import datetime

from delivery.management.client.terminal_text import visible_text
from delivery.models import PipelineRun, RunState
from delivery.pipeline.cleanup import end_orphaned_runs

_FORMAT = "{:>6}  {:<7} {:<9} {:<19} {:>9} {:>12} {:>9}  {}"
_TEXT_LENGTH = 100


def write_runs(count: int, *, write: Callable[[str], object], now: datetime) -> None:
    end_orphaned_runs(now)
    runs = PipelineRun.objects.defer("log", "result")[:count]
    write(
        _FORMAT.format("run", "step", "state", "started (UTC)", "seconds", "rows", "rows/s", "what")
    )
    for run in runs:
        write(_row(run, now=now))


def _row(run: PipelineRun, *, now: datetime) -> str:
    started = f"{run.started_at:%Y-%m-%d %H:%M:%S}" if run.started_at else "–"
    seconds = run.seconds
    if run.state == RunState.RUNNING and run.started_at is not None:
        seconds = (now - run.started_at).total_seconds()
    rows = f"{run.done:,}" if run.done else "–"
    rate = f"{run.done / seconds:,.0f}" if run.done and seconds else "–"
    took = f"{seconds:.1f}" if seconds is not None else "–"
    text = visible_text(run.error or run.doing or f"requested by {run.asked_by or 'the schedule'}")[
        :_TEXT_LENGTH
    ]
    return _FORMAT.format(
        run.pk, run.get_step_display(), run.state, started, took, rows, rate, text
    )
