"""Retention by REST: a pass is started and observed."""

import pytest
from django.utils import timezone

from delivery.models import Archived, RetentionRun
from subscriptions.models import Scope
from tests.unit.delivery.api.client import Caller, caller, fields_of, refused
from tests.unit.delivery.maintenance.retaining import is_there, old, past, run_whole

pytestmark = pytest.mark.django_db

RUNS = "retention-runs"


def test_a_pass_is_begun_and_followed(manager: Caller) -> None:
    Archived.objects.create(pk=1, until=past(1))
    row = old()
    begun = manager.post(RUNS)
    assert (begun.status, begun.body["state"], begun.body["share"]) == (201, "RUNNING", 0)
    run_whole()
    assert not is_there(row)
    run = caller(Scope.READ).get(f"{RUNS}/{begun.body['id']}").body
    assert run | {"started_at": "", "ended_at": ""} == {
        "id": begun.body["id"],
        "state": "DONE",
        "share": 1,
        "messages": 1,
        "deliveries": 1,
        "attempts": 1,
        "kept_because": "",
        "started_at": "",
        "ended_at": "",
    }
    assert run["started_at"].endswith("Z")


def test_only_one_pass_runs_at_a_time(manager: Caller) -> None:
    begun = manager.post(RUNS, {}).body["id"]
    problem = refused(manager.post(RUNS), 409, "running")
    assert f"Follow it at retention-runs/{begun}" in problem["detail"]


def test_passes_are_listed_newest_first(manager: Caller) -> None:
    for _ in range(3):
        RetentionRun.objects.create(state="DONE", ended_at=timezone.now())
    first = manager.get(f"{RUNS}?limit=2").body
    rest = manager.get(first["next"].partition("/api/v1/")[2]).body
    ids = [run["id"] for run in first["results"] + rest["results"]]
    assert ids == sorted(ids, reverse=True)
    assert len(ids) == 3


def test_only_a_manager_begins_one(manager: Caller) -> None:
    refused(caller(Scope.READ).post(RUNS), 403, "wrong-scope")
    refused(caller(Scope.PUBLISH).get(RUNS), 403, "wrong-scope")
    refused(manager.get(f"{RUNS}/1234567"), 404)
    assert fields_of(refused(manager.post(RUNS, {"now": True}), 400)) == {"now"}
