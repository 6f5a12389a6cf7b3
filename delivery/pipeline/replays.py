"""Replays whose selection ended early end with their run: nobody waits for an ended run."""

from delivery.models import PipelineRun, Replay, ReplayState, RunState, Step
from delivery.models.moment import Clock


def end_selection(run: PipelineRun, *, state: RunState, error: str) -> None:
    """End the replay whose selection was this run; call it in the transaction that ends the run."""
    if run.step != Step.REPLAY:
        return
    selecting = Replay.objects.filter(pk=run.options.get("replay"), state=ReplayState.SELECTING)
    ended = ReplayState.CANCELLED if state == RunState.CANCELLED else ReplayState.FAILED
    selecting.update(state=ended, error=error, ended_at=Clock())
