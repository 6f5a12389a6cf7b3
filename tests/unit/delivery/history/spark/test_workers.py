"""Tasks for Spark's workers: every one is run, in both ways.

The lock has no packages of Spark Connect; the way meant for it works on any session.
"""

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import PySparkException

from delivery.history.spark.workers import dealt_shares, run_by_context, run_by_frame, run_tasks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def doubled(text: str) -> bytes:
    return (text * 2).encode()


def reported(items: Sequence[int]) -> dict[str, int]:
    return {"sum": sum(items), "process": os.getpid()}


@pytest.mark.parametrize("way", [run_by_context, run_by_frame])
def test_either_way_does_every_task(spark: "SparkSession", way: Callable[..., Any]) -> None:
    tasks = [f"☃{number}" for number in range(20)]
    assert sorted(way(spark, tasks, doubled)) == sorted(map(doubled, tasks))


def test_workers_do_them(spark: "SparkSession") -> None:
    found = run_tasks(spark, dealt_shares([1, 2, 3, 4]), reported)
    assert sorted(result["sum"] for result in found) == [1, 2, 3, 4]
    assert os.getpid() not in {result["process"] for result in found}


def test_no_task_starts_no_worker(spark: "SparkSession") -> None:
    nothing: list[int] = []
    assert run_tasks(spark, dealt_shares(nothing), reported) == []


@pytest.mark.parametrize("way", [run_by_context, run_by_frame])
def test_a_failed_tasks_error_is_raised(spark: "SparkSession", way: Callable[..., Any]) -> None:
    def fails(task: str) -> bytes:
        raise ValueError(f"nothing to be had of {task}")

    with pytest.raises(PySparkException, match="nothing to be had of this"):
        way(spark, ["this"], fails)


@pytest.mark.parametrize(("count", "tasks"), [(1, 1), (16, 16), (17, 16), (500, 62)])
def test_every_task_is_assigned_once(count: int, tasks: int) -> None:
    dealt = dealt_shares(range(count))
    assert sorted(item for share in dealt for item in share) == list(range(count))
    assert len(dealt) == tasks
    assert max(map(len, dealt)) - min(map(len, dealt)) <= 1
