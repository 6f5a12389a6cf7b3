"""One real Spark for all tests of the history: its JVM takes seconds to start."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from delivery.history.session import Spark, spark_session


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    with spark_session(Spark(master="local[2]", memory="1g")) as session:
        yield session
