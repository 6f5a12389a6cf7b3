"""Work that Spark spreads over its workers: each task is done by one of them, in Python.

For rows that need not go through the JVM: it would turn them from Arrow into its own rows and back, which takes longer than most
of what is done with them.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import orjson
import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Task = TypeVar("Task")
# A task takes Spark about as long as reading a small file: so many have one each; and of many more a large cluster still has enough.
_SHARES_OF_FEW = 16
_ITEMS_A_SHARE = 8


def each(spark: "SparkSession", tasks: Sequence[Task], do: Callable[[Task], Any]) -> list[Any]:
    """Do every task, and return what it gives, as JSON has it, in any order. Tasks and `do` travel: they are to be pickled.

    They are begun in their order, each as soon as a worker is free.
    """
    from pyspark.sql.utils import is_remote

    if not tasks:
        return []
    spread = by_frame if is_remote() else by_context
    return [orjson.loads(told) for told in spread(spark, tasks, lambda task: orjson.dumps(do(task)))]


def shares(items: Sequence[Task]) -> list[Sequence[Task]]:
    """Deal out, in turns, what is too little for a task each: if the largest come first, all have about the same to do."""
    count = min(len(items), max(_SHARES_OF_FEW, len(items) // _ITEMS_A_SHARE))
    return [items[place::count] for place in range(count)]


def by_context(spark: "SparkSession", tasks: Sequence[Task], do: Callable[[Task], bytes]) -> list[bytes]:
    """Do it without Spark SQL, which would plan and compile for seconds."""
    found: list[bytes] = spark.sparkContext.parallelize(tasks, len(tasks)).map(do).collect()
    return found


def by_frame(spark: "SparkSession", tasks: Sequence[Task], do: Callable[[Task], bytes]) -> list[bytes]:
    """Do it by a function of a column: Spark Connect has nothing but frames."""
    from pyspark.sql.pandas.functions import arrow_udf

    def done(numbers: pa.Array) -> pa.Array:
        return pa.array([do(tasks[number]) for number in numbers.to_pylist()], pa.binary())

    # Its stub wants the kind of function to be named, and it warns when it is: the function's own hints tell.
    results = arrow_udf(done, "binary")  # type: ignore[call-overload]
    # A part of one number for each task.
    numbers = spark.range(0, len(tasks), 1, len(tasks))
    return [bytes(row[0]) for row in numbers.select(results("id")).collect()]
