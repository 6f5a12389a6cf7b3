"""A filter on Spark: the columns that Python reads, and the modules that a worker needs."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from pyspark import cloudpickle
from pyspark.sql import DataFrame, SparkSession

from config.env import CHECKOUT
from subscriptions.filters import parse_filter
from subscriptions.filters.to_spark import _answers, to_spark
from subscriptions.filters.tree import Root

OPENED = "$$->'Body'->>'action' = 'opened'"
LOW = "$$->'Header'->>'Priority' = 'low'"


@pytest.fixture
def messages(spark: SparkSession, tmp_path: Path) -> DataFrame:
    """In a file, so that a plan shows which columns are read."""
    rows = [('{"priority": "low"}', b'{"action": "opened"}'), ("{}", b'{"action": "closed"}')]
    spark.createDataFrame(rows, "headers string, body binary").write.parquet(f"{tmp_path}/messages")
    return spark.read.parquet(f"{tmp_path}/messages")


@pytest.fixture
def plan(messages: DataFrame, capsys: pytest.CaptureFixture[str]) -> "SparkPlan":
    return SparkPlan(messages, capsys)


class SparkPlan:
    def __init__(self, messages: DataFrame, capsys: pytest.CaptureFixture[str]) -> None:
        self._messages, self._capsys = messages, capsys

    def of(self, text: str) -> str:
        """Return Spark's plan of counting the matches of the filter."""
        column = to_spark(
            parse_filter(text), header=self._messages.headers, body=self._messages.body
        )
        self._messages.where(column).groupBy().count().explain()
        return self._capsys.readouterr().out


def test_a_filter_of_headers_needs_no_python(plan: SparkPlan) -> None:
    found = plan.of(f"{LOW} or $$->'Header'->>'x' like 'a%' and $$->'Header'->>'y' in ('b', 'c')")
    assert "ArrowEvalPython" not in found
    assert "ReadSchema: struct<headers:string>" in found


@pytest.mark.parametrize("text", [f"{OPENED} and {LOW}", f"not (not {OPENED} or not {LOW})"])
def test_python_evaluates_only_rows_that_pass_the_header_conditions(
    plan: SparkPlan, text: str
) -> None:
    beneath = plan.of(text).partition("ArrowEvalPython")[2]
    assert "Filter" in beneath
    assert "= low" in beneath


def test_python_is_called_once_for_all_filters(plan: SparkPlan) -> None:
    found = plan.of(f"{OPENED} and {LOW} and ($$->'Body'->'n' > 1 or {LOW}) and $$->'Body' ? 'x'")
    assert found.count("ArrowEvalPython") == 1


def test_only_needed_columns_are_read(plan: SparkPlan) -> None:
    assert "ReadSchema: struct<body:binary>" in plan.of(OPENED)
    assert "ReadSchema: struct<headers:string>" in plan.of("$$->'Header'->'priority' = 'low'")


def test_a_worker_needs_only_our_modules_from_a_zip(tmp_path: Path) -> None:
    shipped, asked = tmp_path / "inturn.zip", tmp_path / "asked"
    with zipfile.ZipFile(shipped, "w") as archive:
        for file in (CHECKOUT / "subscriptions").rglob("*.py"):
            archive.write(file, file.relative_to(CHECKOUT))
    answers = _answers(parse_filter(f"{OPENED} and {LOW}"), [Root.HEADER, Root.BODY])
    asked.write_bytes(cloudpickle.dumps(answers))  # type: ignore[no-untyped-call]
    program = f"""
import pickle, pyarrow, sys
answers = pickle.load(open({str(asked)!r}, "rb"))
headers, bodies = ['{{"priority": "low"}}'], [b'{{"action": "opened"}}']
print(answers(pyarrow.array(headers), pyarrow.array(bodies))[0])
print(sys.modules["subscriptions"].__file__)
"""
    reported = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env={"PYTHONPATH": str(shipped)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert reported.stdout.split() == ["True", f"{shipped}/subscriptions/__init__.py"]


def test_importing_the_filters_does_not_import_spark() -> None:
    program = """
import sys, subscriptions.filters.to_spark
print([name for name in ("pyspark", "pyarrow", "django") if name in sys.modules])
"""
    reported = subprocess.run(
        [sys.executable, "-c", program], cwd=CHECKOUT, capture_output=True, text=True, check=True
    )
    assert reported.stdout.strip() == "[]"
