"""Subscribers and policies: defaults, built-in rows, values that have to fit together."""

import pytest
from django.db import IntegrityError

from delivery.models import Lane
from subscriptions.checks.policy import ACTION_FIELDS
from tests.support import factories
from tests.unit.delivery.api.client import Caller, created, fields_of, refused


def test_a_new_subscriber_has_a_lane_and_consistent_defaults(manager: Caller) -> None:
    made = created(manager.post("subscribers", {"name": "crm", "max_queued_to_send": 50}))
    assert made["refill_level"] == 10
    assert made["processing"] == "SERIAL"
    assert made["match_mode"] == "ALL"
    assert Lane.objects.filter(kind="TOPIC", subscriber__name="crm").count() == 1


def test_a_refill_level_is_below_max_queued_to_send(manager: Caller) -> None:
    problem = refused(
        manager.post("subscribers", {"name": "crm", "max_queued_to_send": 5, "refill_level": 5}),
        400,
    )
    assert "refill_level must be less" in problem["detail"]
    created(manager.post("subscribers", {"name": "crm"}))
    refused(manager.patch("subscribers/crm", {"max_queued_to_send": 50}), 400)


def test_a_subscriber_may_be_sent_to_many_times_at_once(manager: Caller) -> None:
    made = created(
        manager.post(
            "subscribers", {"name": "crm", "processing": "CONCURRENT", "max_in_flight": 16}
        )
    )
    assert (made["processing"], made["max_in_flight"]) == ("CONCURRENT", 16)
    assert manager.patch("subscribers/crm", {"processing": "SERIAL"}).body["processing"] == "SERIAL"
    assert made["by_priority"] is False
    assert manager.patch("subscribers/crm", {"by_priority": True}).body["by_priority"] is True


def test_a_subscriber_with_subscriptions_stays_and_one_without_goes(manager: Caller) -> None:
    used = factories.subscription().subscriber
    assert (
        "subscriptions"
        in refused(manager.delete(f"subscribers/{used.name}"), 409, "in-use")["detail"]
    )
    factories.subscriber("idle")
    assert manager.delete("subscribers/idle").status == 204


@pytest.mark.parametrize("name", ["teamforge", "strict"])
def test_a_built_in_policy_stays_as_it_is(manager: Caller, name: str) -> None:
    before = manager.get(f"policies/{name}").body
    assert before["is_built_in"] is True
    assert len(before["description"]) > 50
    refused(manager.patch(f"policies/{name}", {"description": "x"}), 409, "built-in")
    refused(manager.delete(f"policies/{name}"), 409, "built-in")
    assert manager.get(f"policies/{name}").body == before


def test_strict_allows_no_overtaking(manager: Caller) -> None:
    strict = manager.get("policies/strict").body
    blocking = ["on_unreachable", "on_unavailable", "on_server_error", "on_rate_limited"]
    assert {strict[name] for name in blocking} == {"BLOCK"}
    assert strict["in_doubt"] == "HOLD"
    teamforge = manager.get("policies/teamforge").body
    assert (teamforge["on_unreachable"], teamforge["on_server_error"]) == ("BLOCK", "SKIP")


def test_a_copy_takes_omitted_values_from_the_original_and_can_be_changed(manager: Caller) -> None:
    made = created(
        manager.post("policies", {"name": "mine", "copy_of": "strict", "pause_max_seconds": 10})
    )
    assert made["in_doubt"] == "HOLD"
    assert made["pause_max_seconds"] == 10
    assert made["is_built_in"] is False
    assert manager.patch("policies/mine", {"in_doubt": "RESEND"}).body["in_doubt"] == "RESEND"
    assert manager.delete("policies/mine").status == 204


@pytest.mark.parametrize(
    ("name", "schedule", "attempts"),
    [("workfront-2017", ("FIXED", 600), 13), ("workfront-48h", ("EXPONENTIAL", 84.8), 12)],
)
def test_workfront_tries_everything_again_by_the_retry_lane(
    manager: Caller, name: str, schedule: tuple[str, float], attempts: int
) -> None:
    policy = manager.get(f"policies/{name}").body
    assert {policy[field] for field in ACTION_FIELDS} == {"RETRY_LANE"}
    assert (policy["retry_schedule"], policy["retry_seconds"]) == schedule
    assert (policy["max_attempts"], policy["when_used_up"]) == (attempts, "FAIL")
    assert policy["breaks_circuit"] is (name == "workfront-48h")


def test_standard_webhooks_retries_by_the_schedule_of_the_specification(manager: Caller) -> None:
    policy = manager.get("policies/standard-webhooks").body
    assert policy["retry_waits"] == "5,300,1800,7200,18000,36000,50400,72000,86400"
    assert (policy["retry_schedule"], policy["max_attempts"]) == ("LISTED", 10)
    assert policy["blocks_when_overloaded"]
    assert policy["freezes_when_gone"]
    created(
        manager.post(
            "policies", {"name": "mine", "copy_of": "standard-webhooks", "max_attempts": 4}
        )
    )


def test_a_copy_of_webmethods_suspends_and_probes(manager: Caller) -> None:
    suspending = {
        "name": "mine",
        "copy_of": "webmethods",
        "when_used_up": "SUSPEND",
        "probe_seconds": 5,
    }
    made = created(manager.post("policies", suspending))
    assert (made["on_server_error"], made["max_attempts"], made["probe_seconds"]) == (
        "IN_PLACE",
        5,
        5,
    )
    problem = refused(manager.patch("policies/mine", {"max_attempts": None}), 400)
    assert fields_of(problem) == {"max_attempts"}
    assert "after how many attempts" in problem["detail"]


def test_contradictory_values_are_refused_at_their_field(manager: Caller) -> None:
    mixed = {"name": "mine", "on_unreachable": "RETRY_LANE", "on_server_error": "IN_PLACE"}
    assert fields_of(refused(manager.post("policies", mixed), 400)) == {"on_server_error"}
    created(manager.post("policies", {"name": "mine", "copy_of": "workfront-48h"}))
    assert fields_of(refused(manager.patch("policies/mine", {"freeze_failures": 1}), 400)) == {
        "freeze_failures"
    }
    assert (
        manager.patch("policies/mine", {"breaker_failures": 1, "freeze_failures": 1}).status == 200
    )


@pytest.mark.django_db
@pytest.mark.parametrize(
    "values",
    [
        {"when_used_up": "SUSPEND", "max_attempts": None},
        {"breaks_circuit": True, "freeze_failures": 1},
    ],
)
def test_the_table_refuses_endless_retries(values: dict[str, object]) -> None:
    with pytest.raises(IntegrityError):
        factories.policy("mine", **values)


@pytest.mark.parametrize("codes", ["2xx", "200", "200,201, 202"])
def test_success_codes_are_2xx_or_a_list(manager: Caller, codes: str) -> None:
    made = created(manager.post("policies", {"name": "mine", "success_codes": codes}))
    assert made["success_codes"] == codes
    assert manager.get("policies/strict").body["success_codes"] == "2xx"


@pytest.mark.parametrize("codes", ["", "200,", "3xx", "404", "200 201", "2\u0660\u0660", "2xx,200"])
def test_other_success_codes_are_refused(manager: Caller, codes: str) -> None:
    problem = refused(manager.post("policies", {"name": "mine", "success_codes": codes}), 400)
    assert fields_of(problem) == {"success_codes"}


def test_a_policy_in_use_stays(manager: Caller) -> None:
    used = factories.policy("mine", pause_seconds=2)
    factories.subscription(policy=used)
    refused(manager.delete("policies/mine"), 409, "in-use")
