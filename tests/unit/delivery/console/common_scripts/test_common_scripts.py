"""Common scripts in the console: the form refuses as the API does, and shows who includes one."""

import pytest
from django.test import Client

from subscriptions.models import CommonScript, ConfigurationChange
from tests.support import factories

LIST = "/admin/subscriptions/commonscript/"


@pytest.fixture
def dates(db: None) -> CommonScript:
    return CommonScript.objects.create(name="dates", text="function day(text) { return text; }")


def test_a_common_script_is_saved_with_its_lines_and_logged(ann: Client, db: None) -> None:
    ann.post(f"{LIST}add/", {"name": "dates", "text": "\r\nvar a;\r\n", "runs_first": "on"})
    row = CommonScript.objects.get()
    assert (row.text, row.runs_first) == ("\nvar a;\n", True)
    assert ConfigurationChange.objects.get().object_name == "dates"


@pytest.mark.parametrize(
    ("typed", "field", "said"),
    [
        ({"text": "\nvar = 1;"}, "text", "line 2: SyntaxError"),
        ({"text": "$include$none"}, "text", "there is no common script none"),
        ({"text": "$include$dates"}, "text", "it includes itself: dates → dates"),
        ({"text": "let start;"}, "text", "line 2, column 10: SyntaxError"),
        ({"name": "days", "text": "1;"}, "name", "It is included as dates by subscription"),
    ],
)
def test_errors_are_shown_at_their_field(
    ann: Client, dates: CommonScript, typed: dict[str, str], field: str, said: str
) -> None:
    factories.subscription(script="$include$dates\nvar start;")
    answer = ann.post(f"{LIST}{dates.pk}/change/", {"name": "dates"} | typed)
    assert said in answer.context["adminform"].form.errors[field][0]


def test_its_page_leads_to_the_scripts_that_include_it(ann: Client, dates: CommonScript) -> None:
    assert "No script yet" in ann.get(f"{LIST}{dates.pk}/change/").text
    row = factories.subscription(script="$include$dates")
    factories.subscription("other", script="$include$dates2")
    CommonScript.objects.create(name="more", text="$include$dates")
    page = ann.get(f"{LIST}{dates.pk}/change/").text
    assert f">{row}</a>" in page
    assert ">more</a>" in page
    assert "/other</a>" not in page


def test_an_included_one_is_not_deleted(ann: Client, dates: CommonScript) -> None:
    factories.subscription(script="$include$dates")
    page = ann.post(f"{LIST}{dates.pk}/delete/", {"post": "yes"}).text
    assert "dates has scripts that include it (subscription" in page
    assert CommonScript.objects.exists()


def test_an_error_inside_a_common_script_marks_no_line_of_the_tried_one(
    ann: Client, dates: CommonScript
) -> None:
    CommonScript.objects.filter(pk=dates.pk).update(text="\nnone.at;")
    row = factories.subscription(event_type=factories.event_type("Made", sample={}))
    typed = {"tried_subscription": row.pk, "script": "$include$dates"}
    said = ann.post("/admin/subscriptions/subscription/script-test/", typed).text
    assert "line 2 of dates: ReferenceError" in said
    assert "data-script-line" not in said
