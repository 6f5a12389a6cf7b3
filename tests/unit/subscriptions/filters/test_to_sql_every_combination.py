"""Small sets of messages, tested exhaustively: combinations that random filters rarely produce."""

import json
from itertools import product

import pytest

from subscriptions.filters.jsonb import Missing, canonical_text, parse_jsonb
from subscriptions.filters.tree import (
    Comparison,
    Condition,
    Contains,
    Exists,
    IsNull,
    Like,
    Literal,
    Membership,
    Operator,
    Path,
    Root,
)
from tests.unit.subscriptions.filters.evaluation import answers, truth
from tests.unit.subscriptions.filters.random_messages import Message

pytestmark = pytest.mark.usefixtures("inturn_json")

VALUES = [
    *[
        "null",
        "true",
        "false",
        "0",
        "1",
        "1.0",
        "-1",
        "5",
        "10",
        "1e2",
        "9007199254740993",
        "1e1001",
    ],
    *[
        '""',
        '"1"',
        '"1.0"',
        '"5"',
        '"05"',
        '"10"',
        '"a"',
        '"b"',
        '"true"',
        '"false"',
        '"null"',
        '"\\ue000"',
    ],
    *[
        '"\\ud83d\\ude00"',
        "[]",
        "{}",
        "[1]",
        "[true]",
        '["a"]',
        '{"a": 1}',
        '{"a": true}',
        '"{\\"a\\": 1}"',
    ],
]
LITERALS: list[Literal] = [
    None,
    True,
    False,
    0,
    1,
    5,
    -1,
    10**18,
    "",
    "1",
    "a",
    "true",
    "null",
    "{}",
    '{"a": 1}',
]
PIECES = ["%", "_", "\\%", "\\_", "\\\\", "a", "b", "é"]
TEXTS = [
    "",
    *map(
        "".join,
        [*product("ab%_\\é", repeat=1), *product("ab%_\\é", repeat=2), *product("ab%", repeat=4)],
    ),
]


def agree(trees: list[Condition], messages: list[Message]) -> None:
    for start in range(0, len(trees), 500):
        some = trees[start : start + 500]
        for row, message in zip(answers(some, messages), messages, strict=True):
            for tree, answer in zip(some, row, strict=True):
                assert truth(tree, message) is answer, (tree, message)


@pytest.mark.parametrize("is_text", [True, False])
def test_every_operator_on_every_pair_of_values(is_text: bool) -> None:
    left, right = Path(Root.BODY, ("a",), is_text), Path(Root.BODY, ("b",), is_text)
    absent = Path(Root.BODY, ("c",), is_text)
    trees = [Comparison(path, operator, right) for path in (left, absent) for operator in Operator]
    pairs = [f'{{"a": {a}, "b": {b}}}'.encode() for a, b in product(VALUES, VALUES)]
    agree([*trees], [({}, body) for body in pairs])


@pytest.mark.parametrize("is_text", [True, False])
def test_every_operator_on_every_value_and_literal(is_text: bool) -> None:
    path, bodies = (
        Path(Root.BODY, ("a",), is_text),
        [f'{{"a": {value}}}'.encode() for value in VALUES],
    )
    compared = [
        Comparison(path, operator, literal)
        for operator, literal in product(Operator, LITERALS)
        if not (operator.is_order and isinstance(literal, bool))
    ]
    listed = [Membership(path, pair) for pair in product(LITERALS, LITERALS)]
    agree([*compared, *listed, IsNull(path)], [({}, body) for body in [*bodies, b"{}", b"no JSON"]])


def test_every_name_in_every_value() -> None:
    trees = [
        Exists(Path(Root.BODY, steps, False), name)
        for steps in [("a",), ("a", 0)]
        for name in ["", "a", "1"]
    ]
    agree([*trees], [({}, f'{{"a": {value}}}'.encode()) for value in VALUES])


def test_every_value_in_every_value() -> None:
    inner = [
        *VALUES,
        *[f"[{member}]" for member in VALUES],
        "[[]]",
        "[{}]",
        '{"a": {}}',
        '[[1], "a"]',
    ]
    nested = ['[[1], {"a": 1, "b": [2]}]', '{"a": {"b": [1, "a"]}}', '["a", ["a"], null]']
    outer = [
        *VALUES,
        *nested,
        *[f"[{member}, 7]" for member in VALUES],
        '{"a": [1, 2]}',
        "[[1, 2]]",
    ]
    trees = [
        Contains(Path(Root.BODY, ("a",), False), canonical(member)) for member in [*inner, *nested]
    ]
    bodies = [f'{{"a": {value}}}'.encode() for value in outer]
    agree([*trees], [({}, body) for body in [*bodies, b"{}", b"no JSON"]])


def canonical(text: str) -> str:
    value = parse_jsonb(text.encode())
    assert not isinstance(value, Missing)
    return canonical_text(value)


def test_every_pattern_on_every_text() -> None:
    patterns = [
        "",
        *map(
            "".join,
            [*product(PIECES, repeat=1), *product(PIECES, repeat=2), *product(PIECES, repeat=3)],
        ),
    ]
    patterns += map("".join, product("%_a", repeat=4))
    trees = [Like(Path(Root.BODY, (), True), pattern) for pattern in patterns]
    agree([*trees], [({}, json.dumps(text).encode()) for text in TEXTS])
