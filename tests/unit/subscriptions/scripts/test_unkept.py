"""Values of JSON that JavaScript changes are named, and no others."""

import json
from collections.abc import Iterator
from decimal import Decimal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from subscriptions.scripts.pool import ScriptPool
from subscriptions.scripts.unkept import MOST_SHOWN, is_changed, unkept_values
from tests.unit.subscriptions.script_runs import made, run


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ("9007199254740993", ["the number 9007199254740993 becomes 9007199254740992"]),
        ("[9007199254740992, 1e3, 1.50, 0, 0.1, 12e-2, 1E22]", []),
        ("-0", ["the number -0 becomes 0"]),
        ("-0.0e5", ["the number -0.0e5 becomes 0"]),
        ("1e400", ["the number 1e400 becomes Infinity, which JSON writes as null"]),
        ("1e-400", ["the number 1e-400 becomes 0"]),
        ("0.1000000000000000055", ["the number 0.1000000000000000055 becomes 0.1"]),
        ('{"a": 1, "b": {"a": 2}}', []),
        ('{"b": {"a": 1, "a": 1, "a": 2}}', ["the name 'a' stands 3 times; the last one counts"]),
        ('"9007199254740993"', []),
        ("no JSON", []),
        ("[" * 100_000, []),
    ],
)
def test_each_value_that_changes_is_named(body: str, named: list[str]) -> None:
    assert unkept_values(body.encode()) == named


def test_the_first_values_are_enough() -> None:
    body = str([9007199254740993 + 2 * number for number in range(100)])
    assert len(unkept_values(body.encode())) == MOST_SHOWN
    assert unkept_values(b"1" * 5000)[0].startswith("the number 1111")


@pytest.fixture(scope="module")
def pool() -> Iterator[ScriptPool]:
    pool = ScriptPool()
    yield pool
    pool.close()


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.integers(-(10**20), 10**20).map(str)
        | st.from_regex(r"\A-?(0|[1-9][0-9]{0,18})(\.[0-9]{1,20})?(e[+-]?[0-9]{1,2})?\Z"),
        min_size=1,
        max_size=30,
    )
)
def test_exactly_the_named_numbers_are_changed_by_the_engine(
    pool: ScriptPool, numbers: list[str]
) -> None:
    script = "$outmessage = JSON.parse($inmessage);"
    body = made(run(pool, script, f"[{','.join(numbers)}]")).body
    assert body is not None
    for text, after in zip(numbers, json.loads(body, parse_int=str, parse_float=str), strict=True):
        is_kept = Decimal(after) == Decimal(text) and (Decimal(text) or text[0] != "-")
        assert is_changed(text) is not bool(is_kept), text
