"""Local filters of webMethods triggers as Inturn's: their matches, and the refused ones."""

from typing import Any

import orjson
import pytest

from delivery.management.importing.webmethods_filters import CannotTranslateError, translated_filter
from subscriptions.filters import document, parse_filter, to_python

ORDER: dict[str, Any] = {
    "total": 100,
    "name": 'O"Brien %',
    "number": "0042",
    "empty": None,
    "address": {"state": "VA", "lines": [{"text": "first"}, {"text": "second"}]},
}


def matches(text: str) -> bool:
    return to_python(parse_filter(translated_filter(text)))(document({}, orjson.dumps(ORDER)))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('%address/state% == "VA"', True),
        ("%address/state% = 'VA'", True),
        ('%address/state% == "va"', False),
        ('%address/state% != "VA"', False),
        ('%missing% <> "VA"', True),
        ("%total% == 100", True),
        ("%total% >= 100.0", True),
        ("%total% < 99", False),
        ("%total% > -1 and %total% <= 100", True),
        ('%number% L_EQUALS "0042"', True),
        ("%number% L_EQUALS 42", False),
        ("%number% L_LESS_THAN 1", True),
        ('%address/state% L_NOT_EQUALS "VA"', False),
        ("%empty% == $null", True),
        ("%total% != $null", True),
        ("%missing% = $null", True),
        ("%address/lines[1]/text% == 'second'", True),
        ("%/address/lines[0]/text% == 'second'", False),
        ('%name% == "O\\"Brien %"', True),
        ("not %total% = 1", True),
        ("! (%total% = 1 || %total% = 2) && %total% = 100", True),
        ("%total% = 1 or %total% = 100 and %address/state% = 'VA'", True),
        ("(%total% = 1 OR %total% = 100) AND %address/state% = 'NY'", False),
        ("%total% = %total%", True),
    ],
)
def test_a_filter_matches_what_it_matched(text: str, expected: bool) -> None:
    assert matches(text) is expected


def test_a_translated_filter_is_readable() -> None:
    text = '%address/state% L_EQUALS "VA" and %total% > 100'
    assert (
        translated_filter(text)
        == "$$->'Body'->'address'->>'state' = 'VA' AND $$->'Body'->>'total' > 100"
    )


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("%total%", "it ends too early"),
        ("%total% ==", "it ends too early"),
        ("total == 1", "'total == 1' is not expected"),
        ("%total% ~ 1", "'~ 1' is not expected"),
        ("%name% == /O.*/", "'/O.*/' is not expected"),
        ("%total% == 1 %total%", "'%total%' is not expected"),
        ("(%total% == 1", "it ends too early"),
        ("%total% > $null", "no order"),
        ("%a//b% = 1", "is not expected"),
        ("%total% == 1x", "is not expected"),
        ("(" * 40 + "%a% = 1" + ")" * 40, "nested deeper than 30"),
        ("%" + "a/" * 2000 + "a% = 'x'", ""),
    ],
)
def test_what_cannot_be_said_is_refused_with_the_place(text: str, reason: str) -> None:
    with pytest.raises(CannotTranslateError) as caught:
        translated_filter(text)
    assert reason in str(caught.value)
