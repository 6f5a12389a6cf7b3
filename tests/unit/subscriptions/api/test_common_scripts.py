"""Common scripts by REST: what is refused, and what keeps their names."""

import pytest

from subscriptions.models import CommonScript, ConfigurationChange, ScriptLibrary
from tests.support import factories
from tests.unit.subscriptions.api.client import Caller, created, fields_of, refused

TEXT = "function day(text) { return text.slice(0, 10); }\n"


@pytest.fixture
def dates(manager: Caller) -> CommonScript:
    created(manager.post("common-scripts", {"name": "dates", "text": TEXT}))
    return CommonScript.objects.get()


def test_a_common_script_is_made_changed_and_deleted(manager: Caller, dates: CommonScript) -> None:
    assert manager.get("common-scripts/dates").body["text"] == TEXT
    changed = manager.patch("common-scripts/dates", {"runs_first": True, "description": "of days"})
    assert (changed.body["runs_first"], changed.body["description"]) == (True, "of days")
    assert [one["name"] for one in manager.get("common-scripts").body["results"]] == ["dates"]
    assert manager.delete("common-scripts/dates").status == 204
    said = ConfigurationChange.objects.order_by("id").values_list("action", "object_type", "object_name")
    assert list(said) == [(action, "common script", "dates") for action in ("created", "changed", "deleted")]


def test_the_changes_of_all_are_counted(manager: Caller, dates: CommonScript) -> None:
    def version() -> int:
        return ScriptLibrary.objects.get().version

    before = version()
    manager.patch("common-scripts/dates", {"text": "1;"})
    assert version() == before + 1
    manager.patch("common-scripts/dates", {"description": "said"})
    assert version() == before + 1
    manager.delete("common-scripts/dates")
    assert version() == before + 2


@pytest.mark.parametrize(
    ("text", "said", "line"),
    [
        ("var a;\nvar = 1;", "SyntaxError", 2),
        ("\n$include$none", "there is no common script none", 2),
        ("$include$more", "it includes itself: more → more", 1),
    ],
)
def test_a_wrong_one_is_refused_with_its_line(
    manager: Caller, dates: CommonScript, text: str, said: str, line: int
) -> None:
    (error,) = refused(manager.post("common-scripts", {"name": "more", "text": text}), 400)["errors"]
    assert (error["field"], error["line"]) == ("text", line)
    assert said in error["detail"]


def test_a_cycle_over_two_is_refused(manager: Caller, dates: CommonScript) -> None:
    created(manager.post("common-scripts", {"name": "more", "text": "$include$dates"}))
    problem = refused(manager.patch("common-scripts/dates", {"text": "$include$more"}), 400)
    assert "dates → more → dates" in problem["errors"][0]["detail"]


@pytest.mark.parametrize("field", ["script", "text"])
def test_an_included_one_keeps_its_name_and_stays(manager: Caller, dates: CommonScript, field: str) -> None:
    including = "$include$dates\n$outmessage = day($inmessage.at);"
    if field == "script":
        factories.subscription(script=including)
    else:
        CommonScript.objects.create(name="more", text=including)
    refused(manager.delete("common-scripts/dates"), 409, "in-use")
    assert fields_of(refused(manager.patch("common-scripts/dates", {"name": "days"}), 400)) == {"name"}
    assert manager.patch("common-scripts/dates", {"text": "function day() {}"}).status == 200


def test_one_whose_name_is_only_the_beginning_of_an_included_one_may_go(
    manager: Caller, dates: CommonScript
) -> None:
    created(manager.post("common-scripts", {"name": "dates2", "text": TEXT}))
    factories.subscription(script="$include$dates2")
    assert manager.delete("common-scripts/dates").status == 204


def test_a_subscription_includes_only_what_there_is(manager: Caller, dates: CommonScript) -> None:
    row = factories.subscription()
    address = f"subscriptions/{row.pk}"
    (error,) = refused(manager.patch(address, {"script": "1;\n$include$days"}), 400)["errors"]
    assert (error["field"], error["line"]) == ("script", 2)
    assert "there is no common script days" in error["detail"]
    script = "$include$dates\n$outmessage = day($inmessage.at);"
    assert manager.patch(address, {"script": script}).body["script"] == script


def test_a_trial_includes_common_scripts_and_names_the_one_that_fails(
    manager: Caller, dates: CommonScript
) -> None:
    row = factories.subscription()
    body = {"script": "$include$dates\n$outmessage = day($inmessage.at);", "body": {"at": "2026-11-25T12:00"}}
    assert manager.post(f"subscriptions/{row.pk}/try", body).body["body"] == "2026-11-25"
    failed = manager.post(f"subscriptions/{row.pk}/try", body | {"body": {}}).body
    assert failed["error"].startswith("script: line 1 of dates: TypeError")
