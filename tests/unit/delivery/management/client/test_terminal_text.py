"""Text made safe for a terminal."""

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from delivery.management.client.terminal_text import visible_json, visible_text

# Characters with an effect on a terminal, such as ESC; marks of direction are of category Cf.
DIRECTIONS = {"AL", "L", "R", "LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
CONTROLS = st.characters(max_codepoint=0x9F) | st.sampled_from(
    "\u061c\u200e\u200f\u202a\u202e\u2066\u2069"
)


def has_effect(character: str) -> bool:
    category = unicodedata.category(character)
    return category == "Cc" or (
        category == "Cf" and unicodedata.bidirectional(character) in DIRECTIONS
    )


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("x\x1b]0;owned\x07 \x1b[31mred", "x\\x1b]0;owned\\x07 \\x1b[31mred"),
        ("a\x9b31m\x7f\r\x00", "a\\x9b31m\\x7f\\x0d\\x00"),
        ("user\u202ecod.exe\u2069", "user\\u202ecod.exe\\u2069"),
        ("two\tcolumns\nü 漢 😀\n", "two\tcolumns\nü 漢 😀\n"),
    ],
)
def test_control_characters_are_escaped_and_the_rest_is_unchanged(text: str, shown: str) -> None:
    assert visible_text(text) == shown


@given(st.text(CONTROLS | st.characters(exclude_categories=["Cs"])))
def test_no_control_character_is_left(text: str) -> None:
    assert not [
        character
        for character in visible_text(text)
        if has_effect(character) and character not in "\t\n"
    ]


@given(
    st.recursive(
        st.text(CONTROLS), lambda some: st.lists(some) | st.dictionaries(st.text(CONTROLS), some)
    )
)
def test_json_keeps_its_value(value: object) -> None:
    shown = visible_json(json.dumps(value, ensure_ascii=False))
    assert json.loads(shown) == value
    assert not [character for character in shown if has_effect(character)]
