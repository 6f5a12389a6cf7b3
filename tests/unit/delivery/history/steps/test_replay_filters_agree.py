"""The third compiler agrees with the other two: a Spark job evaluates many filters."""

import json
from collections.abc import Sequence
from itertools import product
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col

from subscriptions.filters import document, parse_filter, to_python
from subscriptions.filters.moments import moment_of
from subscriptions.filters.to_spark import to_spark
from subscriptions.filters.tree import (
    And,
    Comparison,
    Condition,
    Contains,
    Exists,
    IsNull,
    Like,
    Membership,
    Not,
    Operator,
    Or,
    Path,
    Root,
)
from tests.system.flows import webhooks
from tests.unit.subscriptions.filters.evaluation import answers
from tests.unit.subscriptions.filters.random_filters import cases, places_in, trees
from tests.unit.subscriptions.filters.random_messages import (
    HEADERS,
    MOMENTS,
    ODDITIES,
    WORDS,
    Message,
    messages,
)
from tests.unit.subscriptions.filters.test_to_sql_every_combination import LITERALS, PIECES, TEXTS

# Columns of a job: many more take Spark longer to compile than to run.
AT_ONCE = 100
FORMS: tuple[type[And | Or], ...] = (And, Or)
MOMENT_LITERALS = [moment for text in MOMENTS[:3] if (moment := moment_of(text))]
PRIORITY, OTHER = (Path(Root.HEADER, (name,), True) for name in ("priority", "filter-string"))


def archived(spark: SparkSession, messages: Sequence[Message]) -> DataFrame:
    """Return archived messages; their headers in both spellings of non-ASCII characters."""
    rows = [
        (at, json.dumps(headers, ensure_ascii=at % 2 == 0), body)
        for at, (headers, body) in enumerate(messages)
    ]
    return spark.createDataFrame(rows, "at bigint, headers string, body binary").repartition(2)


def asked(messages: DataFrame, trees: Sequence[Condition]) -> list[tuple[Any, ...]]:
    columns = [
        to_spark(tree, header=col("headers"), body=col("body")).alias(f"filter_{at}")
        for at, tree in enumerate(trees)
    ]
    return [tuple(row)[1:] for row in messages.select("at", *columns).orderBy("at").collect()]


def expected(
    trees: Sequence[Condition], messages: Sequence[Message]
) -> list[tuple[bool | None, ...]]:
    """Return the closures' results, as `truth` does for one filter and message.

    Here each closure is built once, and each body read once.
    """
    tests = [(to_python(tree), to_python(Not(tree))) for tree in trees]
    documents = [document(*message) for message in messages]
    return [
        tuple(
            True if holds(text_document) else False if fails(text_document) else None
            for holds, fails in tests
        )
        for text_document in documents
    ]


def agree(spark: SparkSession, trees: Sequence[Condition], messages: Sequence[Message]) -> None:
    found = archived(spark, messages).cache()
    for start in range(0, len(trees), AT_ONCE):
        some = trees[start : start + AT_ONCE]
        rows = zip(asked(found, some), expected(some, messages), messages, strict=True)
        for theirs, ours, message in rows:
            for tree, theirs_of, other in zip(some, theirs, ours, strict=True):
                assert theirs_of is other, (tree, message)
    found.unpersist()


@st.composite
def about_headers(draw: st.DrawFn) -> tuple[list[Condition], list[Message]]:
    """Draw like `cases`, but only filters on headers, which Spark mostly evaluates itself."""
    about = draw(st.lists(messages, min_size=3, max_size=8))
    places = [place for message in about for place in places_in(message) if place[0] is Root.HEADER]
    assume(places)
    return draw(st.lists(trees(places), min_size=4, max_size=8)), about


def drawn() -> tuple[list[Condition], list[Message]]:
    """Draw many random cases at once: one Spark job takes as long as a hundred examples."""
    found: list[tuple[list[Condition], list[Message]]] = []

    @settings(
        max_examples=40,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=[HealthCheck.too_slow],
    )
    @given(cases() | about_headers())
    def draw(case: tuple[list[Condition], list[Message]]) -> None:
        found.append(case)

    draw()
    asked, about = zip(*found, strict=True)
    return [row for some in asked for row in some], [row for some in about for row in some]


@pytest.mark.slow
@pytest.mark.django_db
def test_python_postgresql_and_spark_agree_on_true_false_and_null(spark: SparkSession) -> None:
    trees, messages = drawn()
    agree(spark, trees, messages)
    assert asked(archived(spark, messages), trees[:50]) == answers(trees[:50], messages)


def test_every_oddity_is_read_as_python_reads_it(spark: SparkSession) -> None:
    body = Path(Root.BODY, (), False)
    trees: list[Condition] = [
        IsNull(body),
        Contains(body, '{"a": []}'),
        Not(Contains(body, '"\\u0001"')),
        Comparison(body, Operator.EQUAL, body),
        Like(Path(Root.BODY, (), True), "_%"),
    ]
    agree(spark, trees, [({}, text.encode()) for text in ODDITIES] + [({}, b'"\xff"'), ({}, b"")])


def test_every_operator_on_every_pair_of_headers(spark: SparkSession) -> None:
    words = [*WORDS, "\ue000", "a\ud7ff", "a\U00010000", "ſ", "K"]
    messages: list[Message] = [
        ({"priority": priority, "filter-string": filter_string}, b"")
        for priority, filter_string in product(words, words)
    ]
    messages += [({"priority": word}, b"") for word in words] + [({}, b"")]
    conditions: list[Condition] = [Comparison(PRIORITY, operator, OTHER) for operator in Operator]
    conditions += [
        IsNull(PRIORITY),
        IsNull(OTHER),
        Exists(Path(Root.HEADER, (), False), "filter-string"),
    ]
    agree(spark, [*conditions, *map(Not, conditions)], messages)


def test_every_operator_on_every_header_and_literal(spark: SparkSession) -> None:
    compared: list[Condition] = [
        Comparison(PRIORITY, operator, literal)
        for operator, literal in product(
            Operator, [*LITERALS, "z", "é", "𝒳", "\ue000", "\U0001f600", *MOMENT_LITERALS]
        )
        if not (operator.is_order and isinstance(literal, bool))
    ]
    listed: list[Condition] = [
        Membership(PRIORITY, pair) for pair in product([None, True, 5, "5", "a"], repeat=2)
    ]
    many: list[Condition] = [
        Membership(PRIORITY, tuple(WORDS)),
        Not(Membership(PRIORITY, tuple(WORDS[::2]))),
    ]
    agree(
        spark,
        [*compared, *listed, *many],
        [*[({"priority": word}, b"") for word in [*WORDS, *MOMENTS]], ({}, b"")],
    )


def test_every_pattern_on_every_header(spark: SparkSession) -> None:
    patterns = [
        "",
        *PIECES,
        *map("".join, product(PIECES, repeat=2)),
        *map("".join, product("%_a", repeat=4)),
    ]
    patterns += [
        f"%{character}%\U0001f600_" for character in [*".*+?()[]{}^$|#&~-/", "\n", "\\\\E", " "]
    ]
    texts = [*TEXTS, *WORDS, *[f"x{character}\U0001f600é" for character in ".*+?()[]{}^$|#&~-/\n "]]
    agree(
        spark,
        [Like(PRIORITY, pattern) for pattern in patterns],
        [({"priority": text}, b"") for text in texts],
    )


@pytest.mark.slow
def test_logic_has_three_values_however_it_is_cut(spark: SparkSession) -> None:
    native: list[Condition] = [Comparison(path, Operator.EQUAL, "a") for path in (PRIORITY, OTHER)]
    python: list[Condition] = [
        Comparison(Path(Root.BODY, (name,), True), Operator.EQUAL, "a") for name in "ab"
    ]
    leaves: list[Condition] = [*native, *python]
    pairs: list[Condition] = [
        form((first, second)) for form, first, second in product(FORMS, leaves, leaves)
    ]
    nested: list[Condition] = [
        form((Not(pair), leaf)) for form, pair, leaf in product(FORMS, pairs, leaves[1:3])
    ]
    headers: list[dict[str, str]] = [
        {},
        {"priority": "a"},
        {"priority": "b"},
        {"priority": "a", "filter-string": "b"},
    ]
    bodies = [b"{}", b'{"a": "a"}', b'{"a": "b"}', b'{"a": "a", "b": "b"}', b"no JSON"]
    agree(
        spark, [*pairs, *map(Not, pairs), *nested, *map(Not, nested)], [*product(headers, bodies)]
    )


FILTERS = [
    "$$->'Body'->'repository'->>'id' is not null",
    "$$->'Body'->'repository'->'private' = true OR $$->'Body'->'installation'->>'id' is not null",
    "$$->'Body'->'sender'->>'login' = 'Codertocat' AND NOT $$->'Body'->>'action' = 'created'",
    (
        "$$->'Header'->>'Filter-String' like 'GitHub.%Re%' "
        "and not $$->'Header'->>'Priority' in ('low', 'none')"
    ),
    "$$->'Header'->>'Priority' = 'high' and $$->'Body'->'sender'->'id' > 21031067",
    "not ($$->'Header'->>'Priority' >= 'low' or $$->'Body'->'repository' ? 'topics')",
    (
        "$$->'Header'->>'filter_string' = 'GitHub.Issues.Opened' "
        "or $$->'Body'->'issue'->'labels'->0->>'name' = 'bug'"
    ),
    "$$->'Body'->'repository'->'owner' = $$->'Body'->'sender'",
    "$$->'Body'->>'action' < $$->'Header'->>'Priority'",
    "$$->'Body'->'repository'->>'pushed_at' >= '2019-05-15T15:20:33Z'",
    "$$->'Body'->'repository'->>'size' in (0, 1, 2)",
    "$$->'Body'->>'pull_request' like '%\"draft\": false%'",
]


@pytest.mark.slow
@pytest.mark.django_db
@pytest.mark.parametrize("source", webhooks.SOURCES)
def test_payloads_match_the_same_filters_everywhere(spark: SparkSession, source: str) -> None:
    messages = [
        ({"filter-string": line.event, "priority": ["low", "none", "high"][at % 3]}, line.raw)
        for at, line in enumerate(webhooks.read(source))
    ]
    trees = [parse_filter(text) for text in FILTERS]
    found = asked(archived(spark, messages), trees)
    assert found == answers(trees, messages) == expected(trees, messages)
    matched = [sum(row[at] is True for row in found) for at in range(len(FILTERS))]
    assert all(0 < count < len(messages) for count in matched), matched


@pytest.mark.parametrize(
    "text",
    [
        " or ".join(f"$$->'Header'->>'a{at % 10}'='{at}'" for at in range(300)),
        " and ".join(f"$$->'Header'->>'a'!='{at}'" for at in range(300)),
        " or ".join(f"$$->'Body'->'a'={at}" for at in range(300)),
        "not (" * 40 + "$$->'Header'->>'a3' = '13'" + ")" * 40,
    ],
    ids=["or", "and", "body", "deep"],
)
def test_the_longest_filters_compile(spark: SparkSession, text: str) -> None:
    messages: list[Message] = [
        ({f"a{at % 10}": str(at)}, b'{"a": %d}' % at) for at in range(0, 400, 13)
    ]
    agree(spark, [parse_filter(text)], messages)


def test_header_names_are_used_unchanged(spark: SparkSession) -> None:
    names = [*HEADERS, "x'y", "x.y", "x`y", "$", "x[0]", "*", "a?", "ß", "ſ", "s", "x\\y", "0", ""]
    conditions = [
        Comparison(Path(Root.HEADER, (name,), True), Operator.EQUAL, name) for name in names
    ]
    agree(
        spark,
        conditions,
        [({name: name}, b"") for name in names] + [(dict(zip(names, names, strict=True)), b"")],
    )
