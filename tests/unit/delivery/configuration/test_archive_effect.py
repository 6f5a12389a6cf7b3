"""A plan by REST tries the archived messages of the last days, in a run of the pipeline."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone

from delivery.models import PipelineRun, RunState, Step
from delivery.pipeline.request import MOST_WAITING
from tests.support import factories
from tests.unit.delivery.api.client import Caller, caller, refused
from tests.unit.delivery.configuration.document.documents import document
from tests.unit.delivery.pipeline import rows

pytestmark = pytest.mark.django_db


@pytest.fixture
def manager() -> Caller:
    return caller()


def planned(manager: Caller, content: Any, **given: Any) -> Any:
    answer = manager.post("configuration/plan", {"document": content, **given})
    assert answer.status == 200, answer
    return answer.body


def narrowed() -> Any:
    """Create a subscription; return a document with a narrower filter for it."""
    row = factories.subscription("s", subscriber=factories.subscriber("abc"))
    changed = {"subscriber": "abc", "name": row.name, "filter": "$$->'Body'->>'id' = '1'"}
    return document(subscriptions=[changed])


def test_a_plan_with_days_requests_a_run(manager: Caller) -> None:
    content = narrowed()
    assert planned(manager, content)["effect_run"] is None
    assert not PipelineRun.objects.exists()
    plan = planned(manager, content, days=30)
    run = PipelineRun.objects.get()
    assert plan["effect_run"] == run.pk
    assert (run.step, run.state) == (Step.EFFECT, RunState.WAITING)
    assert run.asked_by.startswith("manage key")
    assert run.asked_at - datetime.fromisoformat(run.options["since"]) == timedelta(days=30)
    (change,) = run.options["changes"]
    assert change["subscription"] == "subscription abc/s"
    assert (change["before"], change["after"]) == (["", ""], ["", "$$->'Body'->>'id' = '1'"])
    applying = {"document": content, "digest": plan["digest"]}
    assert manager.post("configuration/apply", applying).body["effect_run"] is None
    assert PipelineRun.objects.count() == 1


def test_a_plan_that_changes_no_matches_requests_none(manager: Caller) -> None:
    narrowed()
    content = document(
        subscriptions=[{"subscriber": "abc", "name": "s", "timeout_seconds": 7}],
        publishers=[{"name": "github"}],
    )
    plan = planned(manager, content, days=30)
    assert (len(plan["changes"]), plan["effect_run"]) == (2, None)
    assert not PipelineRun.objects.exists()


@pytest.mark.parametrize("days", [0, 3661, -1, "30", 1.5, None])
def test_no_impossible_number_of_days_is_tried(manager: Caller, days: Any) -> None:
    given = {"document": narrowed(), "days": days}
    problem = refused(manager.post("configuration/plan", given), 400, "invalid")
    assert [error["field"] for error in problem["errors"]] == ["days"]
    assert not PipelineRun.objects.exists()


def test_the_same_plan_again_gets_the_run_that_waits_or_is_under_way(manager: Caller) -> None:
    content = narrowed()
    first = planned(manager, content, days=30)["effect_run"]
    assert {planned(manager, content, days=30)["effect_run"] for _ in range(9)} == {first}
    run = PipelineRun.objects.get()
    with rows.held(run):
        PipelineRun.objects.update(state=RunState.RUNNING, started_at=timezone.now())
        assert planned(manager, content, days=30)["effect_run"] == first
    assert PipelineRun.objects.count() == 1


def test_other_days_or_changes_get_a_run_of_their_own(manager: Caller) -> None:
    content = narrowed()
    found = [planned(manager, content, days=days)["effect_run"] for days in (30, 31)]
    content["subscriptions"][0]["filter"] = "$$->'Body'->>'id' = '2'"
    found.append(planned(manager, content, days=30)["effect_run"])
    assert len(set(found)) == 3


def test_a_run_that_ended_stops_or_was_killed_is_not_answered(manager: Caller) -> None:
    content = narrowed()
    run = planned(manager, content, days=30)["effect_run"]
    begun = {"state": RunState.RUNNING, "started_at": timezone.now()}
    PipelineRun.objects.filter(pk=run).update(state=RunState.CANCELLED, ended_at=timezone.now())
    run = planned(manager, content, days=30)["effect_run"]
    PipelineRun.objects.filter(pk=run).update(**begun)
    run = planned(manager, content, days=30)["effect_run"]
    assert PipelineRun.objects.count() == 3
    stopping = PipelineRun.objects.get(pk=run)
    with rows.held(stopping):
        PipelineRun.objects.filter(pk=run).update(**begun, is_stopping=True)
        assert planned(manager, content, days=30)["effect_run"] != run


def test_only_so_many_runs_wait(manager: Caller) -> None:
    content = narrowed()
    for days in range(1, MOST_WAITING + 1):
        planned(manager, content, days=days)
    given = {"document": content, "days": 30}
    answer = manager.post("configuration/plan", given)
    detail = refused(answer, 429, "too-many-runs")["detail"]
    assert detail.startswith(f"{MOST_WAITING} runs of the step effect are waiting already.")
    assert "without `days`" in detail
    assert answer.headers["Retry-After"] == "60"
    assert PipelineRun.objects.count() == MOST_WAITING
    assert planned(manager, content)["effect_run"] is None
    assert planned(manager, content, days=1)["effect_run"] is not None
    first = PipelineRun.objects.earliest("id")
    with rows.held(first):
        PipelineRun.objects.filter(pk=first.pk).update(
            state=RunState.RUNNING, started_at=timezone.now()
        )
        assert planned(manager, content, days=30)["effect_run"] is not None
    assert PipelineRun.objects.count() == MOST_WAITING + 1


def test_its_run_is_read_until_it_has_the_effects(manager: Caller) -> None:
    address = f"configuration/effects/{planned(manager, narrowed(), days=1)['effect_run']}"
    waiting = manager.get(address).body
    assert (waiting["state"], waiting["until"], waiting["effects"]) == ("WAITING", None, [])
    moments = [datetime.fromisoformat(waiting[name]) for name in ("since", "asked_at")]
    assert moments[1] - moments[0] == timedelta(days=1)
    found = {"subscription": "subscription abc/s", "asked": 12, "more": 0, "fewer": 7}
    examples = {"example_of_more": None, "example_of_fewer": 9}
    PipelineRun.objects.update(
        state=RunState.DONE,
        ended_at=timezone.now(),
        result={"until": "2026-11-22T10:00:00+00:00", "effects": [found | examples]},
    )
    done = manager.get(address).body
    assert (done["state"], done["until"]) == ("DONE", "2026-11-22T10:00:00Z")
    assert done["effects"] == [
        {
            "object": "subscription abc/s",
            "asked": 12,
            "more": 0,
            "fewer": 7,
            "example_of_more": None,
            "example_of_fewer": "msg_9",
        }
    ]


def test_a_failed_run_has_its_reason(manager: Caller) -> None:
    run = planned(manager, narrowed(), days=1)["effect_run"]
    PipelineRun.objects.update(
        state=RunState.FAILED, ended_at=timezone.now(), error="Nothing is archived yet."
    )
    failed = manager.get(f"configuration/effects/{run}").body
    assert (failed["state"], failed["error"], failed["effects"]) == (
        "FAILED",
        "Nothing is archived yet.",
        [],
    )


def test_no_other_run_is_read_there(manager: Caller) -> None:
    run = PipelineRun.objects.create(step=Step.EXPORT)
    refused(manager.get(f"configuration/effects/{run.pk}"), 404)
    refused(manager.get("configuration/effects/999999"), 404)
