"""Payloads for people: JSON indented and readable, and the difference between two bodies."""

import json

import pytest

from delivery.console.payloads.difference import difference
from delivery.support.json_text import MOST_CHARACTERS, indented
from delivery.support.payload import payload_of


class TestIndented:
    def test_lines_and_characters_are_readable(self) -> None:
        text = '{"name":"M\\u00fcller \\ud83d\\ude00","urls":["https:\\/\\/a"],"none":{},"no":[]}'
        assert indented(text) == (
            '{\n  "name": "Müller 😀",\n  "urls": [\n    "https://a"\n  ],\n'
            '  "none": {},\n  "no": []\n}'
        )

    def test_numbers_and_repeated_names_stay_as_written(self) -> None:
        text = '{"a": 1.10, "a": 123456789012345678901234567890, "b": 1E5, "c": [true, null]}'
        shown = indented(text) or ""
        for written in ("1.10", "123456789012345678901234567890", "1E5", "true", "null"):
            assert written in shown
        assert shown.count('"a"') == 2

    @pytest.mark.parametrize(
        "text",
        ['["\\u0000\\u001b"]', '["\\\\u00fc"]', '["\\u0022\\u005c"]', '["\\"{,:"]', '["\\ud83d"]'],
    )
    def test_the_value_is_the_same(self, text: str) -> None:
        shown = indented(text)
        if shown is not None:
            assert json.loads(shown) == json.loads(text)

    @pytest.mark.parametrize("text", ["", "plain", '"text"', "12", "{", '{"a": NaN}', "<a/>"])
    def test_anything_else_is_not_indented(self, text: str) -> None:
        assert indented(text) is None

    def test_a_long_text_is_shown_as_it_is(self) -> None:
        assert indented(json.dumps(["x" * MOST_CHARACTERS])) is None


class TestDifference:
    def test_json_is_compared_by_its_values_lines(self) -> None:
        before = payload_of(b'{"id":1,"name":"a"}')
        after = payload_of(b'{"id": 1, "name": "b"}')
        assert [(line.kind, line.text) for line in difference(before, after) or []] == [
            ("same", "{"),
            ("same", '  "id": 1,'),
            ("removed", '  "name": "a"'),
            ("added", '  "name": "b"'),
            ("same", "}"),
        ]

    def test_equal_lines_far_from_changes_are_left_out(self) -> None:
        lines = [str(number) for number in range(40)]
        other = [*lines[:20], "x", *lines[21:]]
        kinds = [
            line.kind
            for line in difference(
                payload_of("\n".join(lines).encode()), payload_of("\n".join(other).encode())
            )
            or []
        ]
        assert kinds == ["gap", *["same"] * 3, "removed", "added", *["same"] * 3]

    def test_another_layout_is_no_difference(self) -> None:
        assert difference(payload_of(b'{"a":1}'), payload_of(b'{ "a" : 1 }')) == []

    def test_bytes_and_long_texts_are_not_compared(self) -> None:
        assert difference(payload_of(b"\xff"), payload_of(b"a")) is None
        assert difference(payload_of(b"a"), payload_of(b"\n" * 5000)) is None
