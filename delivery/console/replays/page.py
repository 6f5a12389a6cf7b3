"""The page of a replay: the selection by event type and day, and the progress."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from delivery.models import PipelineRun, Replay, ReplayState
from delivery.support.replays.replays import run_of

SHOWN_DAYS = 400
UNENDED = (ReplayState.SELECTING, ReplayState.READY, ReplayState.RUNNING)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayPreview:
    """Counts by day, earliest first, each with a count per event type and their total."""

    days: Sequence[tuple[str, Sequence[tuple[str, int]], int]]
    totals: Sequence[tuple[str, int]]
    more_days: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayPage:
    """The values of a replay's page; `run` is the selecting run, while open or after a failure."""

    replay: Replay
    preview: ReplayPreview
    run: PipelineRun | None

    @property
    def is_live(self) -> bool:
        return self.replay.state in (ReplayState.SELECTING, ReplayState.RUNNING)

    @property
    def may_cancel(self) -> bool:
        return self.replay.state in UNENDED

    @property
    def not_made(self) -> int:
        return self.replay.done - self.replay.made

    @property
    def share(self) -> float:
        return self.replay.done / self.replay.count if self.replay.count else 1.0

    @property
    def seconds_left(self) -> float | None:
        """The time for the remaining deliveries at the chosen rate."""
        if self.replay.rate is None or self.replay.state not in (
            ReplayState.READY,
            ReplayState.RUNNING,
        ):
            return None
        return (self.replay.count - self.replay.done) / self.replay.rate


def read_replay_page(replay: Replay) -> ReplayPage:
    looks_at_run = replay.state in (ReplayState.SELECTING, ReplayState.FAILED)
    return ReplayPage(
        replay=replay,
        preview=replay_preview(replay.preview),
        run=run_of(replay) if looks_at_run else None,
    )


def replay_preview(counted: Sequence[Mapping[str, object]]) -> ReplayPreview:
    """Arrange rows of {event, day, count} by day."""
    counts: dict[str, dict[str, int]] = {}
    for row in counted:
        counts.setdefault(str(row["day"]), {})[str(row["event"])] = int(str(row["count"]))
    events = sorted({event for day in counts.values() for event in day})
    days = [
        (day, [(event, by_event.get(event, 0)) for event in events], sum(by_event.values()))
        for day, by_event in sorted(counts.items())
    ]
    return ReplayPreview(
        days=days[:SHOWN_DAYS],
        totals=[
            (event, sum(by_event.get(event, 0) for by_event in counts.values())) for event in events
        ],
        more_days=max(len(days) - SHOWN_DAYS, 0),
    )
