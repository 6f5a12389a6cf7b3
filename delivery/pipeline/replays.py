"""What becomes of a replay whose selection did not come to its end: nobody waits for ever for a run that is over."""

from delivery.models import PipelineRun, Replay, ReplayState, RunState, Step
from delivery.models.moment import Clock


def let_go(run: PipelineRun, *, state: RunState, error: str) -> None:
    """End the replay that the run was to select as the run ended; call it in the transaction that ends the run."""
    if run.step != Step.REPLAY:
        return
    selecting = Replay.objects.filter(pk=run.options.get("replay"), state=ReplayState.SELECTING)
    ended = ReplayState.CANCELLED if state == RunState.CANCELLED else ReplayState.FAILED
    selecting.update(state=ended, error=error, ended_at=Clock())
