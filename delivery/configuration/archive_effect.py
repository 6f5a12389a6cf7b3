"""The effect of a plan on the archived messages of the last days: the request, and the findings."""

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from delivery import pipeline
from delivery.configuration.changed_matches import (
    ConcernedSubscription,
    MatchCondition,
    concerned_by,
)
from delivery.configuration.document.plan import Plan
from delivery.configuration.effect import MOST, Effect
from delivery.models import PipelineRun, Step
from subscriptions.values.counts import counted

MOST_DAYS = 3660


def request_effect(plan: Plan, *, days: int, actor: str, now: datetime) -> PipelineRun | None:
    """Request an EFFECT run of the pipeline; None if the plan changes no matches.

    An open run of the same changes and days is returned instead of a second run; raises
    `pipeline.TooManyRunsError`.
    """
    options = effect_options(plan, days=days, now=now)
    if not options["changes"]:
        return None

    def is_same(run: PipelineRun) -> bool:
        asked_days = run.asked_at - datetime.fromisoformat(run.options["since"])
        return asked_days.days == days and run.options["changes"] == options["changes"]

    return pipeline.request_distinct_run(
        Step.EFFECT, options=options, is_same=is_same, actor=actor, now=now
    )


def effect_options(plan: Plan, *, days: int, now: datetime) -> dict[str, Any]:
    """Return the options of an EFFECT run for the plan's first MOST concerned subscriptions."""
    return {
        "since": (now - timedelta(days=days)).isoformat(),
        "changes": [_change(subscription) for subscription in concerned_by(plan)[:MOST]],
    }


def archive_effects(result: Mapping[str, Any]) -> list[Effect]:
    """Return the findings of such a run; none before it is DONE."""
    return [
        Effect(
            label=found["subscription"],
            **{name: value for name, value in found.items() if name != "subscription"},
        )
        for found in result.get("effects", ())
    ]


def archive_lines(result: Mapping[str, Any], *, days: int) -> Iterator[str]:
    """Describe the findings of such a run for people."""
    for effect in archive_effects(result):
        yield (
            f"effect in {counted(days, 'day')}: {effect.label}: "
            f"of {counted(effect.asked, 'archived message')} {effect.difference}"
        )
    yield f"the archive is complete until {result['until']}"


def _change(subscription: ConcernedSubscription) -> dict[str, Any]:
    return {
        "subscription": subscription.label,
        "event_type": subscription.event_type.name,
        "before": _matching(subscription.before),
        "after": _matching(subscription.after),
    }


def _matching(condition: MatchCondition | None) -> list[str] | None:
    return None if condition is None else [condition.header_filter_string, condition.filter]
