"""The functions of the steps, and how run options become their arguments.

Each imports its step when it is called: a process only waiting for runs must not load Spark.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from delivery.models import Step
from delivery.pipeline import settings

if TYPE_CHECKING:
    from delivery.history.job import StepJob

Options: TypeAlias = Mapping[str, Any]
Result: TypeAlias = dict[str, Any]


def call_step(step: str, options: Options, *, job: "StepJob") -> Result:
    """Execute a step and return the JSON result; raises the step's errors."""
    return _FUNCTIONS[Step(step)](job, options)


def _export(job: "StepJob", options: Options) -> Result:
    from delivery.history.steps.export import export_history

    return export_history(job, **options)


def _rollup(job: "StepJob", options: Options) -> Result:
    from delivery.history.steps.rollup import measure_hours

    return measure_hours(job, **options)


def _verify(job: "StepJob", options: Options) -> Result:
    from delivery.history.steps.verify import verify_history

    return verify_history(job, **options)


def _replay(job: "StepJob", options: Options) -> Result:
    from delivery.history.steps.replay import select_messages

    return select_messages(job, replay_id=options["replay"])


def _report(job: "StepJob", options: Options) -> Result:
    from delivery.history.steps.report import write_report

    return write_report(job, **{"to": str(settings.reports_folder()), **options})


def _effect(job: "StepJob", options: Options) -> Result:
    from delivery.history.steps.effect import measure_effect

    return measure_effect(job, **options)


def _compare(job: "StepJob", options: Options) -> Result:
    from delivery.history.steps.compare import compare_logs

    return compare_logs(job, **options)


_FUNCTIONS: Mapping[Step, Callable[["StepJob", Options], Result]] = {
    Step.EXPORT: _export,
    Step.ROLLUP: _rollup,
    Step.VERIFY: _verify,
    Step.REPLAY: _replay,
    Step.REPORT: _report,
    Step.EFFECT: _effect,
    Step.COMPARE: _compare,
}
