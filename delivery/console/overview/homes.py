"""The top of the first page: the proof of order, and the first concerns of the user's role.

Auditors get reports, Support the failures. All have the board below, with open incidents.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Sum

from delivery.console.pipeline.presets import Preset, report_presets
from delivery.console.pipeline.verification import PROVEN
from delivery.console.shared.rights import (
    Person,
    is_rescuer,
    may_configure,
    may_make_reports,
)
from delivery.models import (
    PipelineRun,
    RunState,
    Step,
    SubscriptionTraffic,
)
from subscriptions.models import Subscription
from subscriptions.values.times import parse_time_or_none

FAILING = 8
FAILED_SINCE = timedelta(hours=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """The last done verify run.

    It checked the deliveries from `since` (None: from the beginning) until `until`; an earlier run
    had proven those before. `explained` counts the findings with an explanation.
    """

    run: PipelineRun
    is_proven: bool
    since: datetime | None
    until: datetime | None
    deliveries: int
    explained: int
    broken: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Home:
    """`failing` has subscriptions with their failures of the last hour, the most first."""

    proof: Proof | None
    presets: list[Preset]
    failing: list[tuple[Subscription, int]]
    is_auditor: bool
    is_support: bool


def read_home(user: Person, *, now: datetime) -> Home:
    is_support = is_rescuer(user) and not may_configure(user)
    is_auditor = may_make_reports(user) and not is_rescuer(user)
    return Home(
        proof=_proof() if user.has_perm("delivery.view_pipelinerun") else None,
        presets=report_presets(now) if is_auditor else [],
        failing=_failing(since=now - FAILED_SINCE) if is_support else [],
        is_auditor=is_auditor,
        is_support=is_support,
    )


def _proof() -> Proof | None:
    done = PipelineRun.objects.filter(step=Step.VERIFY, state=RunState.DONE).defer("log")
    run = done.order_by("-id").first()
    if run is None:
        return None
    checks = run.result.get("checks", [])
    return Proof(
        run=run,
        is_proven=str(run.result.get("verdict", "")).lower() == PROVEN,
        since=parse_time_or_none(run.result.get("since")),
        until=parse_time_or_none(run.result.get("until")),
        deliveries=run.result.get("deliveries", 0),
        explained=sum(sum((check.get("explained") or {}).values()) for check in checks),
        broken=sum(check.get("broken", 0) for check in checks),
    )


def _failing(*, since: datetime) -> list[tuple[Subscription, int]]:
    counted = SubscriptionTraffic.objects.filter(at__gte=since, failed__gt=0).order_by()
    summed = counted.values("subscription").annotate(n=Sum("failed")).order_by("-n")[:FAILING]
    failures = {row["subscription"]: row["n"] for row in summed}
    rows = Subscription.objects.select_related("subscriber").in_bulk(list(failures))
    return [(rows[id], count) for id, count in failures.items() if id in rows]
