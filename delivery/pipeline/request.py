"""Asking for a run of the pipeline."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from delivery.models import PipelineRun, Step
from delivery.pipeline import runs
from delivery.pipeline.cleanup import tidy


def request_run(
    step: Step | str, *, options: Mapping[str, Any] | None = None, actor: str = "", now: datetime
) -> PipelineRun:
    """Make a run that waits for its turn; without actor it is the schedule's.

    Of a step that goes through all that is new there is one open run in the whole installation: raises RunOpenError for a second.
    One whose process was killed counts as open no more.
    """
    tidy(now)
    return runs.make(step, options=options or {}, actor=actor, now=now)
