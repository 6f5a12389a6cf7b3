"""Spark's errors as one text with the remedy."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

_CAUSE = "Caused by: "
_EXHAUSTED = "java.lang.OutOfMemoryError"


class SparkError(RuntimeError):
    """Spark failed. The first line of the message is for people; Spark's own text follows."""


@contextmanager
def spark_errors(*, memory: str, log: Path, has_ended: Callable[[], bool]) -> Iterator[None]:
    """Raise SparkError for the errors of PySpark and of the JVM with that heap and log.

    `has_ended` returns whether the JVM has ended.
    """
    from py4j.protocol import Py4JError, Py4JJavaError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError, ConnectionError) as error:
        text = _text_of(error)
        if _EXHAUSTED in text:
            message = f"Spark ran out of memory: {_remedy(memory)}."
        elif (not text or not isinstance(error, PySparkException | Py4JJavaError)) and has_ended():
            message = f"Spark's JVM has ended: see {log}. If memory ran out, {_remedy(memory)}."
        elif isinstance(error, ConnectionError):
            raise
        else:
            causes = [line for line in text.splitlines() if line.startswith(_CAUSE)]
            message = causes[-1].removeprefix(_CAUSE) if causes else ""
        raise SparkError("\n".join(filter(None, (message, text)))) from error


def _text_of(error: Exception) -> str:
    """Return the error's text, or nothing if it is in a JVM that has ended."""
    from py4j.protocol import Py4JError

    try:
        return str(error)
    except (OSError, Py4JError):
        return ""


def _remedy(memory: str) -> str:
    return f"raise SPARK_DRIVER_MEMORY, which is {memory}, and run it again"
