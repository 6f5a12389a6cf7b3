"""An incident of each kind opens while its cause exists, and closes without it."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.utils import timezone

from delivery.models import (
    Delivery,
    EndpointHealth,
    Incident,
    IncidentKind,
    IncidentRule,
    Message,
    PipelineRun,
    RunState,
    Status,
    Step,
    UrlHealth,
    UrlState,
)
from subscriptions.models import Processing
from tests.support import factories
from tests.unit.delivery.incidents.watched import block, fail, rule, turn, unblock

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("any_disk")]

Ending = Callable[[], object]


def stopped_lane() -> Ending:
    lane = block(factories.delivery())
    return lambda: unblock(lane)


def endpoint_down() -> Ending:
    subscriber = factories.subscriber(processing=Processing.CONCURRENT)
    of = factories.subscription(subscriber=subscriber)
    health = factories.endpoint_down(factories.delivery(subscription=of))
    return EndpointHealth.objects.filter(pk=health.pk).delete


def url_frozen() -> Ending:
    health = UrlHealth.objects.create(url="http://127.0.0.1:9/hook", state=UrlState.FROZEN)
    return lambda: UrlHealth.objects.filter(pk=health.pk).update(state=UrlState.ENABLED)


def deliveries_retried() -> Ending:
    rule("RETRYING", bound=2)
    of = factories.subscription()
    rows = [factories.delivery(subscription=of, skipped=True, attempts=1) for _ in range(2)]
    return lambda: factories.settle(rows[0], Status.DELIVERED)


def deliveries_retried_to_a_down_endpoint() -> Ending:
    rule("RETRYING", bound=2)
    of = factories.subscription()
    rows = [factories.delivery(subscription=of, skipped=True, attempts=1) for _ in range(2)]
    factories.endpoint_down(rows[0])
    return lambda: factories.settle(rows[0], Status.DELIVERED)


def failed_deliveries() -> Ending:
    of = factories.subscription()
    fail(subscription=of)
    return lambda: factories.delivery(Status.DELIVERED, subscription=of, settled_at=timezone.now())


def deliveries_in_doubt() -> Ending:
    earlier = timezone.now() - timedelta(minutes=3)
    row = factories.delivery(Status.IN_DOUBT, settled_at=earlier)
    return lambda: Delivery.objects.filter(pk=row.pk).update(status=Status.DELIVERED)


def slow_lane() -> Ending:
    rule("OLDEST", bound=60)
    earlier = timezone.now() - timedelta(minutes=2)
    row = factories.delivery(message=factories.message(published_at=earlier))
    # Lanes are compared with a message that is as old.
    assert Message.objects.filter(published_at__lte=earlier).exists()
    return lambda: factories.settle(row, Status.DELIVERED)


def large_backlog() -> Ending:
    rule("BACKLOG", bound=2)
    rows = [factories.delivery() for _ in range(2)]
    return lambda: factories.settle(rows[0], Status.DELIVERED)


def history_broken() -> Ending:
    verified("broken here")
    return lambda: verified("proven")


def pipeline_failed() -> Ending:
    rule("PIPELINE", bound=2)
    for _ in range(2):
        ran(RunState.FAILED)
    return lambda: ran(RunState.DONE)


def disk_nearly_full() -> Ending:
    rule("DISK", bound=100.0)
    return lambda: rule("DISK", bound=1e-9)


def database_large() -> Ending:
    rule("DATABASE", bound=1e-6)
    return lambda: rule("DATABASE", bound=1e9)


def verified(verdict: str) -> None:
    PipelineRun.objects.create(
        step=Step.VERIFY, state=RunState.DONE, ended_at=timezone.now(), result={"verdict": verdict}
    )


def ran(state: RunState) -> None:
    PipelineRun.objects.create(step=Step.EXPORT, state=state, ended_at=timezone.now())


CAUSES: dict[IncidentKind, Callable[[], Ending]] = {
    IncidentKind.LANE: stopped_lane,
    IncidentKind.ENDPOINT: endpoint_down,
    IncidentKind.URL: url_frozen,
    IncidentKind.RETRYING: deliveries_retried,
    IncidentKind.FAILURES: failed_deliveries,
    IncidentKind.IN_DOUBT: deliveries_in_doubt,
    IncidentKind.OLDEST: slow_lane,
    IncidentKind.BACKLOG: large_backlog,
    IncidentKind.VERIFY: history_broken,
    IncidentKind.PIPELINE: pipeline_failed,
    IncidentKind.DISK: disk_nearly_full,
    IncidentKind.DATABASE: database_large,
}


@pytest.mark.parametrize(
    ("kind", "cause"),
    [*CAUSES.items(), (IncidentKind.RETRYING, deliveries_retried_to_a_down_endpoint)],
)
def test_an_incident_opens_with_its_cause_and_closes_without_it(
    kind: IncidentKind, cause: Callable[[], Ending]
) -> None:
    rules = IncidentRule.objects.all()
    rules.update(is_on=False, after_seconds=0, quiet_seconds=0)
    rules.filter(pk=kind).update(is_on=True)
    end = cause()
    turn()
    turn()
    assert states() == {kind: "OPEN"}
    end()
    turn()
    turn()
    assert states() == {kind: "CLOSED"}


@pytest.mark.parametrize(
    ("kind", "below"),
    [
        (IncidentKind.RETRYING, 3),
        (IncidentKind.OLDEST, 180),
        (IncidentKind.BACKLOG, 3),
        (IncidentKind.PIPELINE, 3),
    ],
)
def test_none_opens_within_the_bound(kind: IncidentKind, below: float) -> None:
    IncidentRule.objects.update(is_on=False, after_seconds=0)
    IncidentRule.objects.filter(pk=kind).update(is_on=True)
    CAUSES[kind]()
    rule(kind, bound=below)
    turn()
    turn()
    assert states() == {}


def states() -> dict[str, str]:
    return dict(Incident.objects.values_list("kind", "state"))
