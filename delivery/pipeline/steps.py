"""The functions of the steps, and how run options become their arguments."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from delivery.models import Step
from delivery.pipeline import settings

if TYPE_CHECKING:
    from delivery.history.job import StepJob

# By name: a process only waiting for runs must not load Spark.
_FUNCTIONS = {
    Step.EXPORT: ("delivery.history.steps.export", "export_history"),
    Step.ROLLUP: ("delivery.history.steps.rollup", "measure_hours"),
    Step.VERIFY: ("delivery.history.steps.verify", "verify_history"),
    Step.REPLAY: ("delivery.history.steps.replay", "select_messages"),
    Step.REPORT: ("delivery.history.steps.report", "write_report"),
    Step.EFFECT: ("delivery.history.steps.effect", "measure_effect"),
    Step.COMPARE: ("delivery.history.steps.compare", "compare_logs"),
}
# Parameters whose name differs from the option's.
_RENAMED = {"replay": "replay_id"}


def call_step(step: str, options: Mapping[str, Any], *, job: "StepJob") -> dict[str, Any]:
    """Execute a step and return the JSON result; raises the step's errors."""
    module, name = _FUNCTIONS[Step(step)]
    function: Callable[..., dict[str, Any]] = getattr(import_module(module), name)
    if step == Step.REPORT:
        options = {"to": str(settings.reports_folder())} | dict(options)
    return function(
        job, **{_RENAMED.get(option, option): value for option, value in options.items()}
    )
