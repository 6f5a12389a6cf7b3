"""An answer that lists faults is bounded, however many the body has and however long they are."""

import json

import pytest

from delivery.incoming.problems import MAX_ERRORS, Problem, invalid_fields
from subscriptions.models import Scope
from tests.support import factories
from tests.unit.delivery.api.client import caller, refused

MOST_BYTES = 256 * 1024


@pytest.mark.django_db
@pytest.mark.parametrize("section", ["subscribers", "subscriptions", "policies"])
def test_a_document_with_a_fault_in_each_place_gets_the_first_faults(section: str) -> None:
    document = {"format": 1, section: [[]] * 100_000}
    answer = caller(Scope.MANAGE).post("configuration/plan", {"document": document})
    problem = refused(answer, 400)
    assert len(problem["errors"]) == MAX_ERRORS
    assert problem["more"] == 100_000 - MAX_ERRORS
    assert len(answer.content) < MOST_BYTES


@pytest.mark.django_db
def test_long_names_in_faults_are_cut() -> None:
    entries = [{"name": f"{number}{'x' * 2000}"} for number in range(300)]
    document = {"format": 1, "publishers": entries}
    answer = caller(Scope.MANAGE).post("configuration/plan", {"document": document})
    assert refused(answer, 400)["more"] >= 100
    assert len(answer.content) < 2 * MOST_BYTES


@pytest.mark.django_db
def test_a_batch_of_bad_messages_gets_a_bounded_answer() -> None:
    key = caller(Scope.PUBLISH, publisher=factories.publisher("shop"))
    items = b"\n".join(json.dumps({"wrong": number}).encode() for number in range(10_000))
    answer = key.ask("POST", "messages:batch", items, content_type="application/x-ndjson")
    assert 400 <= answer.status < 500
    assert len(answer.content) < MOST_BYTES


def test_a_text_of_any_length_is_cut() -> None:
    problem = Problem(400, "invalid", "x" * 10**6)
    assert len(str(problem.detail)) == 2000
    (error,) = invalid_fields([{"field": "y" * 10**6, "detail": "z" * 10**6, "line": 3}]).document[
        "errors"
    ]
    assert (len(error["field"]), len(error["detail"]), error["line"]) == (500, 500, 3)
