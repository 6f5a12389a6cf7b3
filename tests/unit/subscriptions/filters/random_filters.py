"""Random filters about existing values: most paths and literals are taken from the messages."""

from collections.abc import Iterator
from decimal import Decimal
from typing import Any, TypeAlias

from hypothesis import strategies as st

from subscriptions.filters import document
from subscriptions.filters.jsonb import canonical_text, text_of
from subscriptions.filters.moments import moment_of
from subscriptions.filters.tree import (
    And,
    Comparison,
    Condition,
    Contains,
    Exists,
    IsNull,
    Like,
    Literal,
    Membership,
    Not,
    Operator,
    Or,
    Path,
    Root,
)
from tests.unit.subscriptions.filters.random_messages import (
    HEADERS,
    MOMENTS,
    NAMES,
    WORDS,
    Message,
    messages,
)

Steps: TypeAlias = tuple[str | int, ...]
Place: TypeAlias = tuple[Root, Steps, Any]

_wrong_steps = st.sampled_from(NAMES) | st.integers(-3, 3)
_elsewhere: st.SearchStrategy[Place] = st.one_of(
    st.tuples(st.just(Root.BODY), st.lists(_wrong_steps, max_size=3).map(tuple), st.none()),
    st.tuples(st.just(Root.HEADER), st.tuples(st.sampled_from(HEADERS)), st.none()),
)
_numbers = (
    st.integers(-6, 6)
    | st.decimals(-10, 200, places=1)
    | st.sampled_from([10**18, 10**999, 10**400])
)
_any_literal: st.SearchStrategy[Literal] = st.one_of(
    st.none(), st.booleans(), _numbers, _numbers, st.sampled_from(WORDS), st.sampled_from(WORDS)
)
_moments = st.sampled_from([moment for text in MOMENTS if (moment := moment_of(text))])
_pattern_pieces = st.sampled_from(
    ["%", "%", "_", "\\%", "\\_", "\\\\", "a", "b", "c", "é", "5", "\n"]
)
_patterns = st.lists(_pattern_pieces, max_size=6).map("".join)


def places_in(message: Message) -> list[Place]:
    asked = document(*message)
    headers = [(Root.HEADER, (name,), value) for name, value in message[0].items()]
    return headers + [(Root.BODY, steps, value) for steps, value in _values(asked.body, ())]


def _values(value: Any, steps: Steps) -> Iterator[tuple[Steps, Any]]:
    yield steps, value
    inner: list[tuple[str | int, Any]] = []
    if isinstance(value, dict):
        inner = list(value.items())
    elif isinstance(value, list) and len(steps) < 5:
        inner = [
            (draw, member) for at, member in enumerate(value[:3]) for draw in (at, at - len(value))
        ]
    for step, member in inner:
        yield from _values(member, (*steps, step))


def _literals_like(value: Any) -> list[Literal]:
    """Return literals that equal the value in one way of reading it, and close ones."""
    text = text_of(value)
    if isinstance(value, bool) or text is None or len(text) > 1000:
        return [True, False, "true", None]
    numbers: list[Literal] = [value, value + 1] if isinstance(value, int | Decimal) else []
    return [text, text, text + "a", text[:-1], *numbers, *numbers]


def _patterns_like(value: Any) -> st.SearchStrategy[str]:
    text = (text_of(value) or "")[:50].replace("\\", "\\\\").replace("%", "\\%")
    near = [
        text,
        f"%{text}",
        f"{text}%",
        f"{text[:1]}%{text[-1:]}",
        f"%{text[1:3]}%",
        f"_{text[1:]}",
    ]
    near += [f"%{text[:2]}%{text[1:]}", f"{text[:2]}%{text[1:]}", f"%_{text[-1:]}%"]
    near += ["%", *(piece + piece for piece in ("%a", "%_", "a%"))]
    return (
        st.sampled_from([text for text in near if (len(text) - len(text.rstrip("\\"))) % 2 == 0])
        | _patterns
    )


def _inside(value: Any) -> st.SearchStrategy[Any]:
    """Return values that this one contains, and others that it nearly contains."""
    whole = st.just(value)
    parts: list[Any] = [{}, [], [[]], [{}], True, "a", 1, Decimal("1.0"), [value]]
    match value:
        case dict() if value:
            name = st.sampled_from(list(value))
            inner = name.flatmap(lambda key: _inside(value[key]).map(lambda part: {key: part}))
            return whole | inner | st.sampled_from(parts)
        case list() if value:
            some = st.sampled_from(value).flatmap(_inside)
            return whole | some | st.lists(some, max_size=3) | st.sampled_from([*parts, *value])
    return whole | st.sampled_from(parts)


@st.composite
def _conditions(draw: st.DrawFn, places: list[Place]) -> Condition:
    somewhere = st.sampled_from(places) if draw(st.integers(0, 5)) else _elsewhere
    root, steps, value = draw(somewhere)
    path = Path(root, steps, draw(st.booleans()))
    near = _any_literal if draw(st.integers(0, 4)) == 0 else st.sampled_from(_literals_like(value))
    match draw(
        st.sampled_from(
            ["comparison"] * 4 + ["paths"] * 3 + ["in", "in", "like", "exists", "contains", "null"]
        )
    ):
        case "comparison":
            literal = draw(near | _moments if path.is_text else near)
            orderless = isinstance(literal, bool)
            operators = [operator for operator in Operator if not (orderless and operator.is_order)]
            return Comparison(path, draw(st.sampled_from(operators)), literal)
        case "paths":
            other, its_steps, _ = draw(somewhere)
            operand = Path(other, its_steps, path.is_text)
            return Comparison(path, draw(st.sampled_from(Operator)), operand)
        case "in":
            listed = near | _moments if path.is_text else near
            return Membership(path, tuple(draw(st.lists(listed, min_size=1, max_size=4))))
        case "like":
            return Like(Path(root, steps, True), draw(_patterns_like(value)))
        case "exists":
            inside = list(value) if isinstance(value, dict | list) else [value]
            keys = [key for key in inside if isinstance(key, str)]
            return Exists(Path(root, steps, False), draw(st.sampled_from([*keys, *keys, *NAMES])))
        case "contains":
            return Contains(Path(root, steps, False), canonical_text(draw(_inside(value))))
        case _:
            return IsNull(path)


def trees(places: list[Place]) -> st.SearchStrategy[Condition]:
    leaf = _conditions(places)
    several = st.lists(leaf, min_size=2, max_size=3).map(tuple)
    flat = leaf | leaf | st.builds(Not, leaf) | st.builds(And, several) | st.builds(Or, several)
    nested = st.lists(flat, min_size=2, max_size=3).map(tuple)
    return flat | flat | st.builds(And, nested) | st.builds(Or, nested) | st.builds(Not, flat)


@st.composite
def cases(draw: st.DrawFn) -> tuple[list[Condition], list[Message]]:
    """Draw filters, and the messages on which to evaluate all of them."""
    about = draw(st.lists(messages, min_size=3, max_size=8))
    places = [place for message in about for place in places_in(message)]
    return draw(st.lists(trees(places), min_size=4, max_size=8)), about


@st.composite
def walks(draw: st.DrawFn) -> tuple[list[Path], list[Message]]:
    """Draw paths, and the messages in which to follow them."""
    about = draw(st.lists(messages, min_size=3, max_size=8))
    places = st.sampled_from([place for message in about for place in places_in(message)])
    found = draw(
        st.lists(st.tuples(places | places | _elsewhere, st.booleans()), min_size=4, max_size=8)
    )
    return [Path(root, steps, is_text) for (root, steps, _), is_text in found], about
