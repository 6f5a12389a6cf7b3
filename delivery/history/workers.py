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


def each(spark: "SparkSession", tasks: Sequence[Task], do: Callable[[Task], Any]) -> list[Any]:
    """Do every task, and return what it gives, as JSON has it, in any order. Tasks and `do` travel: they are to be pickled.

    They are begun in their order, each as soon as a worker is free.
    """
    from pyspark.sql.pandas.functions import arrow_udf

    def done(numbers: pa.Array) -> pa.Array:
        return pa.array([orjson.dumps(do(tasks[number])) for number in numbers.to_pylist()], pa.binary())

    if not tasks:
        return []
    # Its stub wants the kind of function to be named, and it warns when it is: the function's own hints tell.
    results = arrow_udf(done, "binary")  # type: ignore[call-overload]
    # A part of one number for each task.
    numbers = spark.range(0, len(tasks), 1, len(tasks))
    return [orjson.loads(bytes(row[0])) for row in numbers.select(results("id")).collect()]
