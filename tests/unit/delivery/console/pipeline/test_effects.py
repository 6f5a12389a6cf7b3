"""The page of a run that tries a planned configuration on archived messages."""

from typing import Any

import pytest
from django.test import Client

from delivery.models import RunState, Step
from delivery.pipeline.run_execution import run_waiting
from tests.unit.delivery.api.client import caller
from tests.unit.delivery.console import history_rows

pytestmark = pytest.mark.django_db

SINCE = "2026-10-23T10:00:00+00:00"
CHANGE = {
    "subscription": "subscription abc/orders",
    "event_type": "Order.Created",
    "before": ["", ""],
    "after": ["eu", "$$->'Body'->'price' < 3"],
}
FOUND = {
    "subscription": "subscription abc/orders",
    "asked": 48_210,
    "more": 0,
    "fewer": 312,
    "example_of_more": None,
    "example_of_fewer": 17,
}


def page_of(ann: Client, state: RunState, *, change: Any = CHANGE, **fields: Any) -> str:
    options = {"since": SINCE, "changes": [change]}
    run = history_rows.run(Step.EFFECT, state, options=options, **fields)
    return " ".join(ann.get(f"/admin/delivery/pipelinerun/{run.pk}/change/").text.split())


def test_a_run_lists_deliveries_fewer_and_more_with_an_example(ann: Client) -> None:
    result = {"until": "2026-11-22T10:00:00+00:00", "effects": [FOUND]}
    page = page_of(ann, RunState.DONE, result=result)
    assert "abc/orders" in page
    assert "every message" in page
    assert "FILTER_STRING eu and $$-&gt;&#x27;Body&#x27;-&gt;&#x27;price&#x27; &lt; 3" in page
    assert "48,210" in page
    assert '<span class="inturn-lines">312<span' in page
    assert 'href="/admin/delivery/message/17/change/">for example msg_17</a>' in page
    assert page.count("for example") == 1
    assert "2026-11-22 10:00:00 UTC" in page
    assert "&#x27;asked&#x27;" not in page
    assert "&#x27;event_type&#x27;" not in page


def test_a_run_has_no_figures_before_its_end(ann: Client) -> None:
    for state in (RunState.WAITING, RunState.FAILED):
        page = page_of(ann, state)
        assert "abc/orders" in page
        assert '<td data-label="Messages">–</td>' in page


def test_a_run_has_no_figures_if_no_day_is_archived(ann: Client) -> None:
    result = {"until": "2026-01-01T00:00:00+00:00", "effects": []}
    assert '<td data-label="Messages">–</td>' in page_of(ann, RunState.DONE, result=result)


@pytest.mark.django_db(transaction=True)
def test_without_an_archive_page_and_answer_have_the_remedy_and_no_traceback(ann: Client) -> None:
    waiting = history_rows.run(
        Step.EFFECT, RunState.WAITING, options={"since": SINCE, "changes": [CHANGE]}
    )
    assert run_waiting(waiting.pk) is not None
    remedy = "Nothing is archived yet, and this reads the archive: run the export first."
    page = ann.get(f"/admin/delivery/pipelinerun/{waiting.pk}/change/").text
    assert remedy in page
    assert "Traceback" not in page
    assert "EffectError" not in page
    assert "No log." in page
    answer = caller().get(f"configuration/effects/{waiting.pk}").body
    assert (answer["state"], answer["error"]) == ("FAILED", remedy)
    assert "Traceback" not in str(answer)


def test_before_its_creation_a_subscription_has_no_message(ann: Client) -> None:
    page = page_of(ann, RunState.WAITING, change=CHANGE | {"before": None})
    assert '<td data-label="Before" class="inturn-wrap">no message</td>' in page
