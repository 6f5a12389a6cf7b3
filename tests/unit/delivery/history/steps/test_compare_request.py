"""The options of a comparison are checked before it begins."""

from typing import Any

import pytest

from delivery.history.steps.compare_request import (
    ComparisonError,
    ComparisonOptions,
    read_comparison_request,
)
from subscriptions.filters import FilterError
from tests.unit.delivery.history.archived import seconds


@pytest.mark.parametrize(
    "fields",
    [
        {"format": "xls"},
        {"since": seconds(2).isoformat(), "until": seconds(1).isoformat()},
        {"statuses": {"done": "SENT"}},
    ],
)
def test_contradictory_options_are_refused(fields: dict[str, Any]) -> None:
    given = {"theirs": "x", "key": "$$->'Body'->>'id'"} | fields
    with pytest.raises(ComparisonError):
        read_comparison_request(ComparisonOptions(**given))  # type: ignore[typeddict-item]


def test_a_wrong_key_is_refused() -> None:
    with pytest.raises(FilterError):
        read_comparison_request(ComparisonOptions(theirs="x", key="id"))
