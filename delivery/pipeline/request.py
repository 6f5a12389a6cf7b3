"""Requests for a run of the pipeline."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from delivery.models import PipelineRun, Step
from delivery.pipeline import runs
from delivery.pipeline.cleanup import end_orphaned_runs


def request_run(
    step: Step | str, *, options: Mapping[str, Any] | None = None, actor: str = "", now: datetime
) -> PipelineRun:
    """Create a waiting run; an empty `actor` means the schedule.

    A step of SOLE_STEPS has at most one open run in the whole installation: raises RunOpenError for
    a second one. A run whose process was killed no longer counts as open.
    """
    end_orphaned_runs(now)
    return runs.create_run(step, options=options or {}, actor=actor, now=now)
