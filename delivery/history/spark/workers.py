"""Work distributed by Spark to workers: a worker does each task, in Python.

For rows outside the JVM: it would convert them from Arrow into other rows and back, which takes
longer than most of the work on them.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import orjson
import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Task = TypeVar("Task")
# The overhead of a task is about the time to read a small file: up to this number, each item gets a
# task; above, there are still enough tasks for a large cluster.
_SHARES_OF_FEW = 16
_ITEMS_A_SHARE = 8


def run_tasks(spark: "SparkSession", tasks: Sequence[Task], do: Callable[[Task], Any]) -> list[Any]:
    """Run every task; return the results, as JSON values, in any order.

    Tasks and `do` must be picklable. Tasks begin in their order, each as soon as a worker is free.
    """
    from pyspark.sql.utils import is_remote

    if not tasks:
        return []
    spread = run_by_frame if is_remote() else run_by_context
    return [
        orjson.loads(text) for text in spread(spark, tasks, lambda task: orjson.dumps(do(task)))
    ]


def run_here(tasks: Sequence[Task], do: Callable[[Task], Any]) -> list[Any]:
    """Run every task in this process, in turn; return the same results."""
    return [orjson.loads(orjson.dumps(do(task))) for task in tasks]


def dealt_shares(items: Sequence[Task]) -> list[Sequence[Task]]:
    """Deal items into shares in turn, for items too small for a task each.

    If the largest come first, all shares have about the same work.
    """
    count = min(len(items), max(_SHARES_OF_FEW, len(items) // _ITEMS_A_SHARE))
    return [items[place::count] for place in range(count)]


def run_by_context(
    spark: "SparkSession", tasks: Sequence[Task], do: Callable[[Task], bytes]
) -> list[bytes]:
    """Run the tasks without Spark SQL, which would plan and compile for seconds."""
    results: list[bytes] = spark.sparkContext.parallelize(tasks, len(tasks)).map(do).collect()
    return results


def run_by_frame(
    spark: "SparkSession", tasks: Sequence[Task], do: Callable[[Task], bytes]
) -> list[bytes]:
    """Run the tasks by a function of a column: Spark Connect has nothing but frames."""
    from pyspark.sql.pandas.functions import arrow_udf

    def done(numbers: pa.Array) -> pa.Array:
        return pa.array([do(tasks[number]) for number in numbers.to_pylist()], pa.binary())

    # The stub requires the kind of function, but passing it causes a warning: the function's hints
    # have it.
    results = arrow_udf(done, "binary")  # type: ignore[call-overload]
    # A partition with a number for each task.
    numbers = spark.range(0, len(tasks), 1, len(tasks))
    return [bytes(row[0]) for row in numbers.select(results("id")).collect()]
