"""The top of the first page: the proof of order, and the first concerns of the user's role.

Auditors get reports, Support the failures. All have the board below, with open incidents.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Count

from delivery.console.pipeline.presets import Preset, report_presets
from delivery.console.pipeline.verification import PROVEN
from delivery.console.shared.rights import (
    Person,
    is_rescuer,
    may_configure,
    may_make_reports,
)
from delivery.console.shared.tabs import FAILED
from delivery.models import (
    Delivery,
    Message,
    PipelineRun,
    RunState,
    Step,
)
from delivery.models.delivery import ids_of_message
from subscriptions.models import Subscription
from subscriptions.values.times import parse_time_or_none

FAILING = 8
FAILED_SINCE = timedelta(hours=1)
# No message takes longer between its time and its id, see `Since`.
LISTED_SLACK = timedelta(minutes=5)


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
    """`failing`: subscriptions with failures of the last hour's messages, the most first."""

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
    """Count as the list of deliveries does: what failed of the messages published since."""
    before = Message.objects.filter(published_at__lt=since - LISTED_SLACK).order_by("-published_at")
    first = before.values_list("pk", flat=True).first() or 0
    failed = Delivery.objects.filter(
        status__in=FAILED.statuses,
        pk__gt=ids_of_message(first)[1],
        message__published_at__gte=since,
    )
    counted = failed.order_by().values("subscription").annotate(n=Count("pk")).order_by("-n")
    failures = {row["subscription"]: row["n"] for row in counted[:FAILING]}
    rows = Subscription.objects.select_related("subscriber").in_bulk(list(failures))
    return [(rows[id], count) for id, count in failures.items() if id in rows]
