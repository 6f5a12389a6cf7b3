"""The policy in words and its tries on a line, as they follow the form."""

import pytest
from django.forms import model_to_dict
from django.test import Client

from delivery.console.policies.preview import WIDTH, time_lines
from subscriptions.models import Action, Policy, Schedule
from tests.support import factories

PREVIEW = "/admin/subscriptions/policy/preview/"


def values_of(policy: Policy) -> dict[str, object]:
    values = model_to_dict(policy, exclude=["name"])
    return {
        name: value for name, value in values.items() if value is not None and value is not False
    }


def test_follows_the_form_before_it_is_saved(ann: Client) -> None:
    typed = values_of(Policy(on_unreachable=Action.IN_PLACE, retry_seconds=30, max_attempts=4))
    page = ann.post(PREVIEW, typed).text
    assert "Retries come 30 s after each failure, 3 times" in page
    assert "Retries of a delivery: 30 s, 60 s, 90 s" in page


def test_names_what_is_wrong(ann: Client) -> None:
    typed = values_of(Policy()) | {"on_unreachable": "IN_PLACE", "when_used_up": "SUSPEND"}
    assert "Say after how many attempts" in ann.post(PREVIEW, typed).text


def test_is_for_people_who_edit_policies(ann: Client, reader: Client) -> None:
    assert reader.post(PREVIEW, {}).status_code == 403


def test_the_form_is_a_matrix_of_outcomes_and_actions(ann: Client) -> None:
    policy = factories.policy("mine", on_redirect=Action.REJECT)
    page = ann.get(f"/admin/subscriptions/policy/{policy.pk}/change/").text
    assert page.count('name="on_redirect"') == len(Action)
    # Only a redirect can be unsupported.
    assert page.count('name="on_unreachable"') == len(Action) - 1


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        (
            Policy(
                on_unreachable=Action.RETRY_LANE,
                retry_schedule=Schedule.LISTED,
                retry_waits="5,300,1800",
                max_attempts=4,
            ),
            ["5 s", "5 min", "35 min"],
        ),
        (Policy(pause_seconds=1, pause_max_seconds=4), ["1 s", "3 s", "7 s", "11 s"]),
    ],
)
def test_tries_stand_at_their_times(policy: Policy, words: list[str]) -> None:
    (line,) = time_lines(policy)
    assert [attempt.words for attempt in line.tries][: len(words)] == words
    places = [attempt.x for attempt in line.tries]
    assert places == sorted(places)
    assert places[-1] == WIDTH
    assert line.tries[-1].is_labelled
