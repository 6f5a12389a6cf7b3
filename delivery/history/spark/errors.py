"""Spark's errors as one text with the remedy."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_CAUSE = "Caused by: "


class SparkError(RuntimeError):
    """Spark failed. The first line of the message is for people; Spark's own text follows."""


@contextmanager
def spark_errors(*, memory: str, log: Path) -> Iterator[None]:
    """Raise SparkError for the errors of PySpark and of the JVM with that heap and log."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError) as error:
        raise SparkError(_message(error, memory=memory, log=log)) from error


def _message(error: Exception, *, memory: str, log: Path) -> str:
    from py4j.protocol import Py4JError, Py4JNetworkError

    try:
        text = str(error)
    except (OSError, Py4JError):
        # The text is in the JVM, which has ended.
        text = ""
    if "java.lang.OutOfMemoryError" in text:
        return (
            f"Spark ran out of memory: raise SPARK_DRIVER_MEMORY, which is {memory}, "
            f"and run it again.\n{text}"
        )
    if not text or isinstance(error, Py4JNetworkError):
        return (
            f"Spark's JVM has ended: see {log}. If it ran out of memory, raise "
            f"SPARK_DRIVER_MEMORY, which is {memory}. Then run it again.\n{text}"
        )
    causes = [line for line in text.splitlines() if line.startswith(_CAUSE)]
    return f"{causes[-1].removeprefix(_CAUSE)}\n{text}" if causes else text
