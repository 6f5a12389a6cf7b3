"""The index of filters leaves out only candidates that do not qualify."""

from hypothesis import given, settings

from subscriptions.filters import Condition, document, normal_form
from subscriptions.matching.candidates import Candidate
from subscriptions.matching.index import CandidateIndex
from subscriptions.matching.match import qualifying_candidates
from tests.unit.subscriptions.filters.random_filters import cases
from tests.unit.subscriptions.filters.random_messages import Message

_PROJECT = "$$->'Header'->>'project' = 'p{}'"


def candidate(id: int, filter_text: str) -> Candidate:
    return Candidate(id, id, "", filter_text, str(id), "ALL")


def possible(filters: list[str], headers: dict[str, str], body: bytes = b"{}") -> list[int]:
    index = CandidateIndex([candidate(id, text) for id, text in enumerate(filters)])
    return [found.subscription_id for found in index.possible(document(headers, body))]


def test_filters_that_require_another_text_are_left_out() -> None:
    filters = [
        _PROJECT.format(1),
        "",
        f"$$->'Body'->>'n' > 5 AND {_PROJECT.format(2)}",
        "$$->'Header'->>'project' LIKE '%p%'",
        f"NOT {_PROJECT.format(1)}",
        f"{_PROJECT.format(1)} OR {_PROJECT.format(2)}",
        "this is no filter",
    ]
    anyway = [1, 3, 4, 5, 6]
    assert possible(filters, {"project": "p1"}) == [0, *anyway]
    assert possible(filters, {"project": "p2"}) == [1, 2, *anyway[1:]]
    assert possible(filters, {}) == anyway


def test_filters_that_require_another_beginning_are_left_out() -> None:
    patterns = ["p1-%", "p1%", "p2-%", "%1", "_1", "p1-2", r"\%1", "p1-2_"]
    filters = [f"$$->'Header'->>'project' LIKE '{pattern}'" for pattern in patterns]
    anyway = [3, 4, 6]
    assert possible(filters, {"project": "p1-2"}) == [0, 1, 3, 4, 5, 6, 7]
    assert possible(filters, {"project": "p1"}) == [1, *anyway]
    assert possible(filters, {}) == anyway


def test_a_filter_that_compares_with_a_printed_container_is_found() -> None:
    filters = ["$$->'Body'->>'a' = '{\"b\": 1}'", "$$->'Body'->>'a' = 'x'"]
    filters.append("$$->'Body'->>'a' like '{\"b%'")
    assert possible(filters, {}, b'{"a": {"b":1}}') == [0, 2]


@settings(deadline=None)
@given(cases())
def test_the_same_candidates_qualify(case: tuple[list[Condition], list[Message]]) -> None:
    trees, messages = case
    found = [candidate(id, normal_form(tree)) for id, tree in enumerate(trees)]
    index = CandidateIndex(found)
    for message in messages:
        asked = document(*message)
        assert qualifying_candidates(index.possible(asked), asked) == qualifying_candidates(
            found, asked
        )
