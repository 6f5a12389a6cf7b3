"""Spark's errors as a text with the remedy, and the reasons in the log of the JVM."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

_CAUSE = "Caused by: "
_EXHAUSTED = "java.lang.OutOfMemoryError"
# The lines with which an error begins in the log: of Java's launcher, and of Spark's logging (see
# `jvm`).
_BEGINNING = re.compile(
    r'Exception in thread "[^"]*" (?P<thrown>.*)|\S+ \S+ ERROR \S+: (?P<logged>.*)'
)
# Java's output before any error.
_NOTES = ("Picked up ", "WARNING: ", "NOTE: ")
_MOST_LOG_BYTES = 1024 * 1024
_MOST_REASON = 500


class SparkError(RuntimeError):
    """Spark failed. The first line of the message is for people; Spark's own text follows."""


@contextmanager
def spark_errors(*, memory: str, log: Path, ending: Callable[[], str | None]) -> Iterator[None]:
    """Raise SparkError for the errors of PySpark and of the JVM with this heap and log.

    `ending` returns how the JVM ended, for people, or None while it runs.
    """
    from py4j.protocol import Py4JError, Py4JJavaError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError, ConnectionError) as error:
        text = _text_of(error)
        is_readable = text and isinstance(error, PySparkException | Py4JJavaError)
        ended = None if is_readable else ending()
        if _EXHAUSTED in (ended or text):
            message = (
                f"Spark ran out of memory: raise SPARK_DRIVER_MEMORY, which is {memory}, "
                "and run it again."
            )
        elif ended is not None:
            message = f"{ended}. Its log is {log}."
        elif isinstance(error, ConnectionError):
            raise
        else:
            message = _reason(text)
        raise SparkError("\n".join(filter(None, (message, text)))) from error


def logged_reason(log: Path, *, since: int, is_last: bool = False) -> str:
    """Return the reason of the first or last error behind an offset of a JVM's log, or nothing.

    An error's reason is the first cause, or the error's own text.
    """
    try:
        with log.open("rb") as file:
            file.seek(since)
            text = file.read(_MOST_LOG_BYTES).decode(errors="replace")
    except OSError:
        return ""
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith(_NOTES)]
    begun = [place for place, line in enumerate(lines) if _BEGINNING.match(line)]
    if not begun:
        return " ".join(lines[:2])[:_MOST_REASON]
    return _reason_of_error(lines[begun[-1] if is_last else begun[0] :])


def _reason_of_error(lines: list[str]) -> str:
    for line in lines[1:]:
        if line.startswith(_CAUSE):
            return line.removeprefix(_CAUSE)[:_MOST_REASON]
        if _BEGINNING.match(line):
            break
    beginning = _BEGINNING.match(lines[0])
    assert beginning is not None
    return (beginning["thrown"] or beginning["logged"] or "")[:_MOST_REASON]


def _reason(text: str) -> str:
    """Return the last cause in a text of Java, or Py4J's line after a colon."""
    lines = text.splitlines()
    causes = [line for line in lines if line.startswith(_CAUSE)]
    if causes:
        return causes[-1].removeprefix(_CAUSE)
    return next((line.removeprefix(": ") for line in lines if line.startswith(": ")), "")


def _text_of(error: Exception) -> str:
    """Return the error's text, or nothing if it is in an ended JVM."""
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - Py4J asks the JVM for it, and fails in many ways
        return ""
