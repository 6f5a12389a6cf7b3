"""One real Spark for all tests of the history: its JVM takes seconds to start."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from delivery.history.job import StepJob
from delivery.history.spark.session import Spark, spark_session
from tests.support import brief_spark
from tests.unit.delivery.history import archived


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    # The tests wait for it.
    spark = Spark(master="local[2]", memory="1g", nice=0, java=brief_spark.JAVA)
    with spark_session(spark) as session:
        # To compile a query takes longer than to interpret it for a few rows.
        session.conf.set("spark.sql.codegen.wholeStage", "false")
        session.conf.set("spark.sql.codegen.factoryMode", "NO_CODEGEN")
        yield session


@pytest.fixture
def progress() -> archived.RecordedProgress:
    """The progress of the fixture `job`."""
    return archived.RecordedProgress()


@pytest.fixture
def job(
    tmp_path: Path, spark: SparkSession, progress: archived.RecordedProgress
) -> Iterator[StepJob]:
    """A run whose archive is the test's own folder; the test has to be transactional."""
    with archived.job(tmp_path, spark=spark, progress=progress) as given:
        yield given
