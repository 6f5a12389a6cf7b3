"""What a sender commits: entries, and the statements that write many of them at once."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from delivery.outcome import Outcome
from delivery.sql import statement
from delivery.states import LaneState
from delivery.verdict import Step, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Settlement:
    """The outcome of one attempt; `number` is the attempt's, counted from 1."""

    lane_id: int
    delivery_id: int
    number: int
    verdict: Verdict
    outcome: Outcome
    was_skipped: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """The deliveries that a lane is about to send, in that order, with the attempts each had."""

    lane_id: int
    ids: tuple[int, ...]
    attempts: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneChange:
    """What a lane is at from now on; it also ends the lane's run unless told otherwise."""

    lane_id: int
    state: LaneState
    reason: str = ""
    delivery_id: int | None = None
    failures: int = 0
    next_try_at: datetime | None = None
    ends_run: bool = True


Entry = Settlement | Run | LaneChange

Query = tuple[str, dict[str, Any]]


def queries(entries: Sequence[Entry]) -> list[Query]:
    """Return the statements that commit these entries in one transaction.

    Runs come before changes of lanes: of one lane in one group, the change is the later.
    """
    settlements = [entry for entry in entries if isinstance(entry, Settlement)]
    runs = [entry for entry in entries if isinstance(entry, Run)]
    changes = [entry for entry in entries if isinstance(entry, LaneChange)]
    found: list[Query] = []
    if settlements:
        found.append((statement("settle"), _settlement_columns(settlements)))
    if runs:
        found.append((statement("record_runs"), _run_columns(runs)))
    if changes:
        found.append((statement("change_lanes"), _change_columns(changes)))
    return found


def _settlement_columns(settlements: Sequence[Settlement]) -> dict[str, Any]:
    outcomes = [entry.outcome for entry in settlements]
    return {
        "delivery": [entry.delivery_id for entry in settlements],
        "number": [entry.number for entry in settlements],
        "status": [entry.verdict.status.value for entry in settlements],
        "skipped": [entry.was_skipped or entry.verdict.step is Step.SKIP for entry in settlements],
        "reason": [_text(outcome.reason) for outcome in outcomes],
        "outcome": [outcome.outcome.value for outcome in outcomes],
        "status_code": [outcome.status_code for outcome in outcomes],
        "error": [_text(outcome.error) for outcome in outcomes],
        "excerpt": [outcome.excerpt for outcome in outcomes],
        "started_at": [outcome.started_at for outcome in outcomes],
        "duration_ms": [outcome.duration_ms for outcome in outcomes],
    }


def _run_columns(runs: Sequence[Run]) -> dict[str, Any]:
    # Arrays of arrays must be rectangular in PostgreSQL, so each run travels as text.
    return {
        "lane": [run.lane_id for run in runs],
        "ids": [_array(run.ids) for run in runs],
        "attempts": [_array(run.attempts) for run in runs],
    }


def _change_columns(changes: Sequence[LaneChange]) -> dict[str, Any]:
    return {
        "lane": [change.lane_id for change in changes],
        "state": [change.state.value for change in changes],
        "reason": [_text(change.reason) for change in changes],
        "delivery": [change.delivery_id for change in changes],
        "failures": [change.failures for change in changes],
        "next_try_at": [change.next_try_at for change in changes],
        "ends_run": [change.ends_run for change in changes],
    }


def _array(numbers: Sequence[int]) -> str:
    return "{" + ",".join(map(str, numbers)) + "}"


def _text(text: str) -> str:
    # What a receiver wrote may hold a NUL, which PostgreSQL's text cannot.
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}")
