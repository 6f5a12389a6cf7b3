"""Common scripts by REST: refusals, and the objects that keep their names."""

import pytest

from subscriptions.models import CommonScript, ConfigurationChange, ScriptLibrary, Subscription
from tests.support import factories
from tests.unit.delivery.api.client import Caller, created, fields_of, refused

TEXT = "function day(text) { return text.slice(0, 10); }\n"


@pytest.fixture
def dates(manager: Caller) -> CommonScript:
    created(manager.post("common-scripts", {"name": "dates", "text": TEXT}))
    return CommonScript.objects.get()


def test_a_common_script_is_made_changed_and_deleted(manager: Caller, dates: CommonScript) -> None:
    assert manager.get("common-scripts/dates").body["text"] == TEXT
    changed = manager.patch("common-scripts/dates", {"runs_first": True, "description": "of days"})
    assert (changed.body["runs_first"], changed.body["description"]) == (True, "of days")
    assert [script["name"] for script in manager.get("common-scripts").body["results"]] == ["dates"]
    assert manager.delete("common-scripts/dates").status == 204
    said = ConfigurationChange.objects.order_by("id").values_list(
        "action", "object_type", "object_name"
    )
    assert list(said) == [
        (action, "common script", "dates") for action in ("created", "changed", "deleted")
    ]


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
    (error,) = refused(manager.post("common-scripts", {"name": "more", "text": text}), 400)[
        "errors"
    ]
    assert (error["field"], error["line"]) == ("text", line)
    assert said in error["detail"]


def test_a_cycle_over_two_is_refused(manager: Caller, dates: CommonScript) -> None:
    created(manager.post("common-scripts", {"name": "more", "text": "$include$dates"}))
    problem = refused(manager.patch("common-scripts/dates", {"text": "$include$more"}), 400)
    assert "dates → more → dates" in problem["errors"][0]["detail"]


@pytest.mark.parametrize("field", ["script", "text"])
def test_an_included_one_keeps_its_name_and_stays(
    manager: Caller, dates: CommonScript, field: str
) -> None:
    including = "$include$dates\n$outmessage = day($inmessage.at);"
    if field == "script":
        factories.subscription(script=including)
    else:
        CommonScript.objects.create(name="more", text=including)
    in_use = refused(manager.delete("common-scripts/dates"), 409, "in-use")
    owner = (
        f"subscription {Subscription.objects.get()}" if field == "script" else "common script more"
    )
    assert f"dates has scripts that include it ({owner})" in in_use["detail"]
    assert fields_of(refused(manager.patch("common-scripts/dates", {"name": "days"}), 400)) == {
        "name"
    }
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
    body = {
        "script": "$include$dates\n$outmessage = day($inmessage.at);",
        "body": {"at": "2026-11-25T12:00"},
    }
    assert manager.post(f"subscriptions/{row.pk}/try", body).body["body"] == "2026-11-25"
    failed = manager.post(f"subscriptions/{row.pk}/try", body | {"body": {}}).body
    assert failed["error"].startswith("line 1 of dates: TypeError")


def broken(field: str, manager: Caller, change: dict[str, object]) -> str:
    (error,) = refused(manager.patch("common-scripts/dates", change), 400)["errors"]
    assert error["field"] == field
    return str(error["detail"])


def test_a_change_that_breaks_an_including_script_is_refused_with_its_place(
    manager: Caller, dates: CommonScript
) -> None:
    CommonScript.objects.create(name="more", text="$include$dates")
    direct = factories.subscription(script="$include$dates\nvar a;\n  let start = 1;")
    indirect = factories.subscription(script="$include$more\nlet start = 1;")
    factories.subscription(script="let start = 1;")
    said = broken("text", manager, {"text": TEXT + "var start;"})
    assert f"subscription {direct}: line 3, column 13: SyntaxError: " in said
    assert f"subscription {indirect}: line 2, column 11: SyntaxError: " in said
    assert said.count("SyntaxError") == 2
    assert CommonScript.objects.get(name="dates").text == TEXT
    assert manager.patch("common-scripts/dates", {"text": TEXT + "var begin;"}).status == 200


def test_only_what_was_valid_before_keeps_a_change_from_being_saved(
    manager: Caller, dates: CommonScript
) -> None:
    factories.subscription(script="$include$dates\nvar = 1;")
    assert manager.patch("common-scripts/dates", {"text": "var begin;"}).status == 200


def test_one_that_is_to_run_first_is_checked_with_all_scripts(
    manager: Caller, dates: CommonScript
) -> None:
    row = factories.subscription(script="let day = 1;")
    assert f"subscription {row}: line 1, column " in broken("text", manager, {"runs_first": True})
    row.delete()
    assert manager.patch("common-scripts/dates", {"runs_first": True}).status == 200
    assert manager.patch("common-scripts/dates", {"name": "days", "text": "let day;"}).status == 200


def test_the_first_of_many_broken_scripts_are_named(manager: Caller, dates: CommonScript) -> None:
    for number in range(7):
        factories.subscription(script=f"$include$dates\nlet start = {number};")
    said = broken("text", manager, {"text": "let start;"})
    assert (said.count("subscription "), said[-13:]) == (3, "; and others.")
