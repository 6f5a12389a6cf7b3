"""Spark's errors: one line that names the remedy, then Spark's own text."""

from pathlib import Path

import pytest
from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from delivery.history.spark.errors import SparkError, spark_errors

LOG = Path("logs", "spark.log")


def message_of(error: Exception, *, has_ended: bool = False) -> tuple[str, str]:
    """Return the first line, and the rest."""
    errors = spark_errors(memory="1g", log=LOG, has_ended=lambda: has_ended)
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
def test_an_ended_jvm_names_its_log(error: Exception) -> None:
    first, _ = message_of(error, has_ended=True)
    assert first == (
        "Spark's JVM has ended: see logs/spark.log. If memory ran out, raise "
        "SPARK_DRIVER_MEMORY, which is 1g, and run it again."
    )


def test_a_lost_connection_to_others_stays_as_it_is() -> None:
    errors = spark_errors(memory="1g", log=LOG, has_ended=lambda: False)
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
