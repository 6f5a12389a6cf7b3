"""Pipeline runs in the terminal, up to their end.

A run with another end than DONE ends the command, with a separate exit code.
"""

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from django.core.management.base import CommandError
from tqdm import tqdm

from delivery.history.archive.small_files import has_unanswered_calls
from delivery.history.spark.session import SparkSessions
from delivery.management.terminal_user import terminal_user
from delivery.models import PipelineRun, RunState, Step
from delivery.pipeline import RunOpenError, run_execution
from delivery.pipeline.run_execution import ExecutedRun, RunHost

# Exit codes: failed or stopped; a run of the step is open already; verify found violations; 128
# plus the signal's number, as in shells.
FAILED, REFUSED, BROKEN, INTERRUPTED = 1, 3, 4, 128
# A part of the result of verify, for the next run.
_FOR_PROGRAMS = {"proof"}
# The parts of a comparison and of examples, in the guide's order: `jsonb` sorts keys by length.
_IN_ORDER = (
    *("result", "key", "subscription", "there", "here", "overtook"),
    *("same", "only_there", "only_here", "other_status", "other_order"),
    *("log_rows_without_key", "messages_without_key", "examples", "path"),
)


def run_steps(steps: Sequence[Step], *, write: Callable[[str], object]) -> None:
    """Run steps in turn in one Spark session, and write each result.

    The first failure raises CommandError.
    """
    with SparkSessions() as sessions:
        for step in steps:
            run_step(step, write=write, sessions=sessions)


def run_step(
    step: Step,
    *,
    options: Mapping[str, Any] | None = None,
    write: Callable[[str], object],
    sessions: SparkSessions | None = None,
) -> PipelineRun:
    """Run a step and write the result; raise CommandError."""
    try:
        with StepBar(step.label) as bar:
            host = RunHost(shown=[bar], sessions=sessions, force=_exit_with_result)
            executed = run_execution.run_now(
                step, options=options or {}, actor=terminal_user(), host=host
            )
    except RunOpenError as error:
        raise CommandError(str(error), returncode=REFUSED) from None
    return _ended(executed, write)


def run_requested(
    id: int, *, write: Callable[[str], object], gives_back: bool = False
) -> PipelineRun:
    """Run a waiting run, and write the result; raise CommandError.

    With `gives_back` it waits again after a signal ends it.
    """
    run = PipelineRun.objects.filter(pk=id).first()
    if run is None:
        raise CommandError(f"There is no run {id}; see `history runs`.")
    with StepBar(run.get_step_display()) as bar:
        host = RunHost(shown=[bar], force=_exit_with_result)
        executed = run_execution.run_waiting(id, host=host, gives_back=gives_back)
    if executed is None:
        run.refresh_from_db()
        raise CommandError(
            f"{run} does not wait to be run: it is {run.state}. See `history runs`.",
            returncode=REFUSED,
        )
    return _ended(executed, write)


def run_in_words(run: PipelineRun) -> str:
    """Return the result of a run as lines of text."""
    took = f" in {run.seconds:.1f} s" if run.seconds is not None else ""
    shown = {name: value for name, value in run.result.items() if name not in _FOR_PROGRAMS}
    return "\n".join([f"{run}: {run.state}{took}", *_lines(shown)])


def _lines(result: Mapping[str, Any]) -> Iterator[str]:
    for name, value in _ordered(result):
        if isinstance(value, list) and value and isinstance(value[0], dict):
            yield f"  {name}:"
            yield from (f"    {_value(item)}" for item in value)
        else:
            yield f"  {name}: {_value(value)}"


def _ordered(values: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Return the items in the order in which people read them; others come first."""
    ranks = {name: rank for rank, name in enumerate(_IN_ORDER)}
    return sorted(values.items(), key=lambda item: ranks.get(item[0], -1))


def _ended(executed: ExecutedRun, write: Callable[[str], object]) -> PipelineRun:
    """Report the run; end the process at once if the exit would wait for a silent storage."""
    if has_unanswered_calls():
        _exit_with_result(executed)
    return _reported(executed, write)


def _reported(executed: ExecutedRun, write: Callable[[str], object]) -> PipelineRun:
    run = executed.run
    if executed.interrupted_by is not None:
        consequence = (
            "it waits again" if run.state == RunState.WAITING else "unfinished work does not count"
        )
        raise CommandError(
            f"{run}: interrupted; {consequence}.",
            returncode=INTERRUPTED + int(executed.interrupted_by),
        )
    if run.state == RunState.CANCELLED:
        raise CommandError(f"{run}: stopped; unfinished work does not count.", returncode=FAILED)
    if run.state != RunState.DONE:
        raise CommandError(f"{run}: {run.state}. {run.error}", returncode=FAILED)
    write(run_in_words(run))
    if "broken" in str(run.result.get("verdict", "")):
        raise CommandError(f"{run}: its findings are in the console.", returncode=BROKEN)
    return run


def _exit_with_result(executed: ExecutedRun) -> None:
    """Report the run and end the process at once, also if the main thread does not react."""
    try:
        _reported(executed, sys.stdout.write)
        code = 0
    except CommandError as error:
        # The bar's line has no end.
        sys.stderr.write(f"\nCommandError: {error}\n")
        code = error.returncode
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _value(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_value(inner)}" for name, inner in _ordered(value)) or "–"
    if isinstance(value, list):
        return ", ".join(map(_value, value)) or "–"
    if value is None:
        return "–"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


class StepBar:
    """A `Progress` of `delivery.history.job` on standard error: a bar with rows per second.

    In a file it is a line for each activity.
    """

    def __init__(self, step: str) -> None:
        self._step = step
        self._bar = tqdm(unit=" rows", unit_scale=True, desc=step, file=sys.stderr, disable=None)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bar.close()

    def doing(self, text: str) -> None:
        if self._bar.disable:
            sys.stderr.write(f"{self._step}: {text}\n")
            sys.stderr.flush()
        else:
            self._bar.set_description_str(f"{self._step}: {text}")

    def advance(self, done: int, count: int | None) -> None:
        self._bar.total = count
        self._bar.n = done
        self._bar.refresh()
