"""Spark's errors: one line that names the remedy, then Spark's own text."""

from pathlib import Path

import pytest
from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from delivery.history.spark.errors import SparkError, logged_reason, spark_errors

LOG = Path("logs", "spark.log")


def message_of(error: Exception, *, ending: str | None = None) -> tuple[str, str]:
    """Return the first line, and the rest."""
    errors = spark_errors(memory="1g", log=LOG, ending=lambda: ending)
    with pytest.raises(SparkError) as raised, errors:
        raise error
    first, _, rest = str(raised.value).partition("\n")
    return first, rest


def test_exhausted_memory_names_the_setting() -> None:
    text = "Job aborted: java.lang.OutOfMemoryError: Java heap space"
    first, rest = message_of(PySparkException(message=text))
    assert first == (
        "Spark ran out of memory: raise SPARK_DRIVER_MEMORY, which is 1g, and run it again."
    )
    assert rest == text


@pytest.mark.parametrize(
    "error",
    [
        Py4JNetworkError("Answer from Java side is empty"),
        Py4JError("An error occurred while calling o1.count"),
        ConnectionRefusedError(111, "Connection refused"),
    ],
)
def test_an_ended_jvm_is_named_with_its_end_and_log(error: Exception) -> None:
    first, _ = message_of(error, ending="Spark's JVM has ended (exit code 1): no room")
    assert first == "Spark's JVM has ended (exit code 1): no room. Its log is logs/spark.log."


def test_a_jvm_that_ended_because_its_heap_was_full_names_the_setting() -> None:
    ending = "Spark's JVM has ended (exit code 52): java.lang.OutOfMemoryError: Java heap space"
    first, _ = message_of(Py4JNetworkError("Answer from Java side is empty"), ending=ending)
    assert first.startswith("Spark ran out of memory: raise SPARK_DRIVER_MEMORY, which is 1g,")


class _TextInDeadJvmError(Py4JError):  # type: ignore[misc]
    """As Py4J's errors of Java are, whose text is in the JVM."""

    def __str__(self) -> str:
        raise ConnectionRefusedError(111, "Connection refused")


def test_an_error_whose_text_is_in_the_ended_jvm_has_the_end_as_its_text() -> None:
    first, rest = message_of(_TextInDeadJvmError(), ending="Spark's JVM has ended (exit code 1)")
    assert first == "Spark's JVM has ended (exit code 1). Its log is logs/spark.log."
    assert rest == ""


RESOLVING = """\
Picked up JAVA_TOOL_OPTIONS: -Xmx1g
WARNING: A restricted method was called
Exception in thread "main" java.lang.ExceptionInInitializerError
\tat org.apache.spark.util.Utils$.<clinit>(Utils.scala)
Caused by: java.net.UnknownHostException: vm: vm: Name or service not known
\tat java.base/java.net.InetAddress.getLocalHost(Unknown Source)
Caused by: java.net.UnknownHostException: vm: Name or service not known
"""
MASTERS = """\
2026-11-28 10:00:01 ERROR StandaloneSchedulerBackend: Application has been killed. Reason: gone
2026-11-28 10:00:02 ERROR SparkContext: Error initializing SparkContext.
java.lang.IllegalStateException: stopped
"""


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        (
            RESOLVING,
            "java.net.UnknownHostException: vm: vm: Name or service not known",
            "java.net.UnknownHostException: vm: vm: Name or service not known",
        ),
        (
            MASTERS,
            "Application has been killed. Reason: gone",
            "Error initializing SparkContext.",
        ),
        (
            'Exception in thread "main" org.apache.spark.SparkException: no HADOOP_CONF_DIR\n',
            "org.apache.spark.SparkException: no HADOOP_CONF_DIR",
            "org.apache.spark.SparkException: no HADOOP_CONF_DIR",
        ),
        (
            "Invalid maximum heap size: -Xmx1x\nError: Could not create the JVM.\nError: A\n",
            "Invalid maximum heap size: -Xmx1x Error: Could not create the JVM.",
            "Invalid maximum heap size: -Xmx1x Error: Could not create the JVM.",
        ),
        ("", "", ""),
    ],
)
def test_the_log_of_a_jvm_has_the_reason(tmp_path: Path, text: str, first: str, last: str) -> None:
    log = tmp_path / "spark.log"
    earlier = b"Caused by: java.lang.Error: of another run \xff\n"
    log.write_bytes(earlier + text.encode())
    assert logged_reason(log, since=len(earlier)) == first
    assert logged_reason(log, since=len(earlier), is_last=True) == last


def test_a_lost_log_has_no_reason(tmp_path: Path) -> None:
    assert logged_reason(tmp_path / "lost.log", since=0) == ""


def test_a_lost_connection_to_others_stays_as_it_is() -> None:
    errors = spark_errors(memory="1g", log=LOG, ending=lambda: None)
    with pytest.raises(ConnectionResetError), errors:
        raise ConnectionResetError


def test_an_error_of_java_has_its_cause_first(spark: SparkSession) -> None:
    jvm = spark.sparkContext._jvm
    assert jvm is not None
    cause = jvm.java.lang.IllegalStateException("the cause")
    with pytest.raises(Py4JJavaError) as raised:
        jvm.java.util.concurrent.CompletableFuture.failedFuture(cause).get()
    first, rest = message_of(raised.value)
    assert first == "java.lang.IllegalStateException: the cause"
    assert "ExecutionException" in rest
