"""Values for the pages of pipeline runs: progress, result, and advice after a failure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from delivery.console.shared.labels import label
from delivery.models import RUN_OPEN, Archived, PipelineRun, PipelineSchedule, RunState, Step
from subscriptions.values.times import duration

TONES = {
    RunState.WAITING: "neutral",
    RunState.RUNNING: "open",
    RunState.DONE: "good",
    RunState.FAILED: "bad",
}
# The steps with a button; replays and reports have forms of their own.
BY_BUTTON = (Step.EXPORT, Step.ROLLUP, Step.VERIFY)
PURPOSES = {
    Step.EXPORT: "archives settled deliveries, and compacts the files",
    Step.ROLLUP: "counts exported deliveries by hour, for the charts",
    Step.VERIFY: "checks that order was kept, and that nothing was lost or delivered twice",
    Step.REPLAY: "selects the messages of a replay",
    Step.REPORT: "writes a report file",
    Step.EFFECT: "measures the effect of a planned configuration on the archive",
    Step.COMPARE: "compares deliveries with the log of another broker",
}
_REMEDIES = {
    Step.EXPORT: "Run it again: it continues where it stopped. Unverified files do not count.",
    Step.ROLLUP: "Run it again: it recomputes the missing hours.",
    Step.VERIFY: "Run it again: it only reads.",
    Step.REPLAY: "If its replay still exists, open it and select again, or cancel it.",
    Step.REPORT: "Create the report again.",
    Step.EFFECT: "Plan again, with the days: it only reads.",
    Step.COMPARE: "Run `manage.py compare` again: it only reads.",
}
# Results with their own place on a page, for programs only, or with parts of payloads.
_HIDDEN = {"checks", "verdict", "proof", "path", "to", "columns", "examples", "changes", "effects"}
_CLOCK = "%Y-%m-%d %H:%M:%S UTC"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A run as shown on the page and in the list."""

    run: PipelineRun
    now: datetime

    @property
    def is_open(self) -> bool:
        return self.run.state in RUN_OPEN

    @property
    def state(self) -> str:
        return label(self.run.state, tone=TONES.get(RunState(self.run.state)))

    @property
    def seconds(self) -> float | None:
        if self.run.started_at is None:
            return None
        return ((self.run.ended_at or self.now) - self.run.started_at).total_seconds()

    @property
    def took(self) -> str:
        """The duration as text: `0.4 s`, `2 min 5 s`; `–` for a run not started."""
        if self.seconds is None:
            return "–"
        return (
            f"{self.seconds:.1f} s"
            if self.seconds < 10
            else duration(timedelta(seconds=self.seconds))
        )

    @property
    def rows_per_second(self) -> str:
        if not self.seconds or not self.run.done:
            return "–"
        speed = self.run.done / self.seconds
        return f"{speed:,.0f}" if speed >= 10 else f"{speed:.1f}"

    @property
    def rows(self) -> str:
        if self.is_open and self.run.count:
            return f"{self.run.done:,} of {self.run.count:,}"
        return f"{self.run.done:,}"

    @property
    def share(self) -> float | None:
        """The share of rows done, if the total is known."""
        return min(self.run.done / self.run.count, 1.0) if self.run.count else None

    @property
    def purpose(self) -> str:
        return PURPOSES[Step(self.run.step)]

    @property
    def remedy(self) -> str:
        return _REMEDIES[Step(self.run.step)] if self.run.state == RunState.FAILED else ""

    @property
    def options(self) -> list[tuple[str, str]]:
        return list(values_in_words(self.run.options))

    @property
    def result(self) -> list[tuple[str, str]]:
        return list(values_in_words(self.run.result))


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipeline:
    """The part above the list of runs.

    For each step with a button: purpose, schedule, pace and open run.
    """

    steps: list[tuple[Step, str, PipelineSchedule | None, str, PipelineRun | None]]
    archived_until: datetime | None


def read_pipeline() -> Pipeline:
    schedules = {schedule.step: schedule for schedule in PipelineSchedule.objects.all()}
    open_runs = {
        run.step: run for run in PipelineRun.objects.filter(state__in=RUN_OPEN).defer("log")
    }
    paces = {step: pace_in_words(schedule.every_minutes) for step, schedule in schedules.items()}
    return Pipeline(
        steps=[
            (step, PURPOSES[step], schedules.get(step), paces.get(step, ""), open_runs.get(step))
            for step in BY_BUTTON
        ],
        archived_until=Archived.objects.values_list("until", flat=True).first(),
    )


def pace_in_words(every_minutes: int) -> str:
    """Return a pace as text, such as `every 15 minutes` or `every day`."""
    named = {1: "minute", 60: "hour", 1440: "day", 10080: "week"}
    return (
        f"every {named[every_minutes]}"
        if every_minutes in named
        else f"every {every_minutes:,} minutes"
    )


def values_in_words(values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield names and values as text; a nested value gets a separate name.

    Such a name has the outer name in it, for example `rows of messages`.
    """
    for name, value in values.items():
        words = name.replace("_", " ")
        if name in _HIDDEN or value is None or value in ("", [], {}):
            continue
        if isinstance(value, Mapping):
            yield from ((f"{words} of {inner}", text) for inner, text in values_in_words(value))
        else:
            yield words, _text(value)


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.1f}"
    if isinstance(value, list):
        return ", ".join(_text(item) for item in value)
    return _moment(str(value))


def _moment(text: str) -> str:
    """Return a datetime in readable form, any other text unchanged."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return text
    return f"{moment:{_CLOCK}}" if moment.tzinfo else text
