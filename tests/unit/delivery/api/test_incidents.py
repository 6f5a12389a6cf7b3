"""Incidents by REST: read, acknowledge, mute, assign, close, resubmit."""

from datetime import timedelta

import pytest
from django.db import transaction
from django.utils import timezone

from delivery.models import Incident, Status
from delivery.support import bulk_jobs
from subscriptions.models import Scope
from tests.support import factories
from tests.unit.delivery.api.client import Caller, caller, refused
from tests.unit.delivery.incidents.watched import block, fail, turn

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("any_disk")]


def test_incidents_are_listed_without_those_that_are_only_watched(manager: Caller) -> None:
    blocked, young = factories.delivery(), factories.delivery()
    block(blocked)
    block(young, minutes=1)
    turn()
    (shown,) = manager.get("incidents?state=OPEN").body["results"]
    assert (shown["kind"], shown["cause"]) == ("LANE", "500: oops")
    assert shown["message"] == blocked.message.public_id
    assert caller(Scope.READ).get(f"incidents/{shown['id']}").body == shown
    watched = Incident.objects.get(state="WATCHED")
    refused(manager.get(f"incidents/{watched.pk}"), 404)


def test_people_acknowledge_assign_and_mute(manager: Caller) -> None:
    block(factories.delivery())
    turn()
    address = f"incidents/{Incident.objects.get().pk}"
    refused(caller(Scope.READ).post(f"{address}/acknowledge"), 403, "wrong-scope")
    assert manager.post(f"{address}/acknowledge").body["acknowledged_by"]
    refused(manager.post(f"{address}/acknowledge"), 409, "not-possible")
    assert manager.post(f"{address}/assign", {"assignee": "sue"}).body["assignee"] == "sue"
    until = timezone.now() + timedelta(hours=1)
    assert manager.post(f"{address}/mute", {"until": until.isoformat()}).body["muted_until"]
    past = {"until": (until - timedelta(days=1)).isoformat()}
    refused(manager.post(f"{address}/mute", past), 409, "not-possible")
    refused(manager.post(f"{address}/close"), 409, "not-possible")


def test_exactly_its_failures_are_sent_again(manager: Caller) -> None:
    of = factories.subscription()
    rows = [fail(subscription=of) for _ in range(3)]
    # A failure by another cause, of the same subscription and status.
    other = fail(Status.EXPIRED, subscription=of)
    turn()
    incident = Incident.objects.get(cause="404")
    job = manager.post(f"incidents/{incident.pk}/resubmit")
    assert (job.status, job.body["count"]) == (201, 3)
    with transaction.atomic():
        bulk_jobs.advance_job(timezone.now())
    for row in [*rows, other]:
        row.refresh_from_db()
    assert [row.status for row in rows] == ["PENDING"] * 3
    assert other.status == "EXPIRED"
    refused(manager.post(f"incidents/{incident.pk}/resubmit"), 409, "not-possible")
    assert manager.post(f"incidents/{incident.pk}/close").body["state"] == "CLOSED"
