"""Which function of the history does a step, and how it is given the options of its run."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from delivery.models import Step
from delivery.pipeline import settings

if TYPE_CHECKING:
    from delivery.history.job import StepJob

# By name: who only waits for runs must not load Spark.
_FUNCTIONS = {
    Step.EXPORT: ("delivery.history.steps.export", "export"),
    Step.ROLLUP: ("delivery.history.steps.rollup", "rollup"),
    Step.VERIFY: ("delivery.history.steps.verify", "verify"),
    Step.REPLAY: ("delivery.history.steps.replay", "select"),
    Step.REPORT: ("delivery.history.steps.report", "report"),
}
# A parameter that is called otherwise than the option.
_RENAMED = {"replay": "replay_id"}


def call_step(step: str, options: Mapping[str, Any], *, job: "StepJob") -> dict[str, Any]:
    """Do a step; returns what it found, as JSON can say it. Raises whatever the step does."""
    module, name = _FUNCTIONS[Step(step)]
    function: Callable[..., dict[str, Any]] = getattr(import_module(module), name)
    if step == Step.REPORT:
        options = {"to": str(settings.reports())} | dict(options)
    return function(job, **{_RENAMED.get(option, option): value for option, value in options.items()})
