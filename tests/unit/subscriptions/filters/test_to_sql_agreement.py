"""The compilers agree with each other and with PostgreSQL."""

from datetime import date
from hashlib import sha256

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from subscriptions.filters import document, parse_filter, text_at
from subscriptions.filters.jsonb import MISSING, parse_jsonb, printed_text
from subscriptions.filters.moments import moment_of
from subscriptions.filters.to_sql import Parameter
from subscriptions.filters.tree import Comparison, Condition, Operator, Path, Root
from tests.unit.subscriptions.filters.evaluation import answers, ask, truth
from tests.unit.subscriptions.filters.random_filters import cases, walks
from tests.unit.subscriptions.filters.random_messages import (
    GROWING,
    MOMENTS,
    ODDITIES,
    WORDS,
    Message,
    bodies,
)

pytestmark = pytest.mark.usefixtures("inturn_json")

# The fixture only provides a connection, which these tests do not change.
many = settings(
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    # Explaining a failure would take minutes of queries and add nothing to the values shown.
    phases=set(Phase) - {Phase.explain},
)


@many
@given(cases())
def test_python_and_postgresql_agree_on_true_false_and_null(
    case: tuple[list[Condition], list[Message]],
) -> None:
    asked, about = case
    rows = answers(asked, about)
    assert rows == [tuple(truth(tree, message) for tree in asked) for message in about]


@many
@given(st.lists(bodies, min_size=1, max_size=20))
def test_python_reads_and_prints_json_as_jsonb_does(asked: list[bytes]) -> None:
    rows = ask(["body::text"], [], [({}, body) for body in asked])
    ours = [parse_jsonb(body) for body in asked]
    assert [text for (text,) in rows] == [
        None if value is MISSING else printed_text(value) for value in ours
    ]


@many
@given(walks())
def test_paths_lead_where_the_arrows_of_postgresql_lead(
    walk: tuple[list[Path], list[Message]],
) -> None:
    asked, about = walk
    compiled = [plain(path) for path in asked]
    parameters = [parameter for _, given in compiled for parameter in given]
    rows = ask(["body IS NOT NULL", *[sql for sql, _ in compiled]], parameters, about)
    for (has_body, *row), message in zip(rows, about, strict=True):
        for path, text in zip(asked, row, strict=True):
            if has_body or path.root.value == "Header":
                assert text_at(path)(document(*message)) == text


def plain(path: Path) -> tuple[str, list[Parameter]]:
    """Return the path as a person would write it in PostgreSQL."""
    *arrows, last = ["->"] * len(path.steps) + ["->>" if path.is_text else "->"]
    steps: list[str | int] = [path.root.value, *path.steps]
    types = ["int" if isinstance(step, int) else "text" for step in steps]
    chain = "".join(
        f" {arrow} %s::{kind}" for arrow, kind in zip([*arrows, last], types, strict=True)
    )
    return f"(jsonb_build_object('Header', header, 'Body', body){chain})::text", list(steps)


def test_no_oddity_is_read_differently() -> None:
    asked = [text.encode() for text in ODDITIES]
    asked += [b'{"a": ' + body + b"}" for body in asked] + [
        b"\xed\xa0\x80",
        b'"\xff"',
        b'"\xc0\x80"',
        b'"\xf4\x90\x80\x80"',
    ]
    rows = ask(["body::text"], [], [({}, body) for body in asked])
    for body, (text,) in zip(asked, rows, strict=True):
        value = parse_jsonb(body)
        assert text == (None if value is MISSING else printed_text(value)), body


def test_numbers_grow_to_the_same_bound_everywhere() -> None:
    asked = [text.encode() for text in GROWING]
    rows = ask(["sha256(convert_to(body::text, 'UTF8'))"], [], [({}, body) for body in asked])
    ours = [parse_jsonb(body) for body in asked]
    assert [digest and bytes(digest) for (digest,) in rows] == [
        None if value is MISSING else sha256(printed_text(value).encode()).digest()
        for value in ours
    ]
    assert {value is MISSING for value in ours[-30:]} == {True, False}


def test_both_compilers_agree_on_texts_that_are_numbers() -> None:
    about = [({"priority": word}, b"") for word in WORDS]
    tree = parse_filter("$$->'Header'->>'Priority' >= 0 or $$->'Header'->>'Priority' in (-5, -0.5)")
    assert answers([tree], about) == [(truth(tree, message),) for message in about]


def test_both_compilers_read_the_same_texts_as_moments() -> None:
    about = [({"at": text}, b"") for text in MOMENTS]
    literals = [moment for text in MOMENTS if (moment := moment_of(text))]
    trees: list[Condition] = [
        Comparison(Path(Root.HEADER, ("at",), True), operator, literal)
        for operator in Operator
        for literal in literals
    ]
    rows = answers(trees, about)
    assert rows == [tuple(truth(tree, message) for tree in trees) for message in about]
    assert [row[0] is not None for row in rows] == [moment_of(text) is not None for text in MOMENTS]


_days = st.dates(min_value=date(1000, 1, 1), max_value=date(2999, 12, 31)).map(str)
_odd_days = st.tuples(st.integers(990, 3010), st.integers(0, 13), st.integers(0, 32)).map(
    lambda parts: "{:04}-{:02}-{:02}".format(*parts)
)
_rests = st.from_regex(
    r"\AT[0-2][0-9]:[0-6][0-9]:[0-6][0-9]([.:][0-9]{1,10})?(Z|[+-][01][0-9]:?[0-6][0-9])\Z"
)


@many
@given(st.lists(st.tuples(_days | _odd_days, _rests).map("".join), min_size=1, max_size=20))
def test_python_reads_moments_as_timestamptz_does(texts: list[str]) -> None:
    literal = moment_of("2022-12-12T00:00:00Z")
    trees: list[Condition] = [
        Comparison(Path(Root.HEADER, ("at",), True), operator, literal) for operator in Operator
    ]
    known = [moment for text in texts if (moment := moment_of(text))]
    trees += [
        Comparison(Path(Root.HEADER, ("at",), True), Operator.EQUAL, literal_value)
        for literal_value in known
    ]
    about = [({"at": text}, b"") for text in texts]
    rows = answers(trees, about)
    assert rows == [tuple(truth(tree, message) for tree in trees) for message in about]
