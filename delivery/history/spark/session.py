"""The Spark session of a run: on the bundled JVM, or on a cluster with the same code."""

import os
import subprocess
import sys
import tempfile
import threading
import zipfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from delivery.history.spark.errors import spark_errors
from delivery.history.spark.jvm import NICE, START_SECONDS, Jvm, StartedJvm, class_cache
from delivery.history.spark.reach import require_connect, require_master
from delivery.history.spark.scratch import scratch_folder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CHECKOUT = Path(__file__).resolve().parents[3]
# The packages imported by the workers of a cluster.
_SHIPPED = ("delivery", "subscriptions")
LOCAL = "local[*]"
# The time in which a JVM ends after its connections broke.
END_SECONDS = 1.0
# The longest time for an orderly end: it writes the recording of the classes.
CLOSE_SECONDS = 60.0
# Settings which affect results, for every kind of session.
_ANYWHERE = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.python.filterPushdown.enabled": "true",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.compression.codec": "zstd",
    # Batches for Python workers, and rows queued for them, are bounded by bytes: 10,000 bodies
    # exhausted the heap.
    "spark.sql.execution.arrow.maxBytesPerBatch": "8m",
    "spark.sql.execution.arrow.pythonUDF.columnarInput.enabled": "false",
    # A broadcast may take as long as reading the whole archive.
    "spark.sql.broadcastTimeout": "-1",
    # Persisted frames are read a few times, and dropped with the run.
    "spark.sql.inMemoryColumnarStorage.compressed": "false",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Spark:
    """Where Spark runs; `remote` (sc://host:port, Spark Connect) takes precedence over `master`.

    `remote` may have a token.

    With `cache` None there is no cache. `is_brief` means: Python does nearly all of the work, not
    the JVM. With `nice` 0 the JVM has the priority of this process. `java` are further options of
    Java.
    """

    master: str = LOCAL
    remote: str = field(default="", repr=False)
    memory: str = "1g"
    nice: int = NICE
    is_brief: bool = False
    java: tuple[str, ...] = ()
    cache: Path | None = None
    log: Path = Path(os.devnull)

    @property
    def is_local(self) -> bool:
        return not self.remote and self.master.startswith("local")

    @property
    def saves_classes(self) -> bool:
        """Whether a run started now writes the cache of classes at the end."""
        if self.remote or self.is_brief or self.cache is None:
            return False
        return class_cache(self.cache).is_wanted


@contextmanager
def spark_session(spark: Spark) -> Iterator["SparkSession"]:
    """Yield a session, and end it with the JVM; one at a time per process.

    Raises JavaError, SparkError and, for a wrong place of Spark, ReachError.
    """
    with _session_and_jvm(spark) as (session, _):
        yield session


@contextmanager
def _session_and_jvm(spark: Spark) -> Iterator[tuple["SparkSession", StartedJvm | None]]:
    if spark.remote:
        require_connect(spark.remote)
        with _connected(spark) as session:
            yield session, None
        return
    require_master(spark.master, environment=os.environ)
    if spark.is_local:
        os.environ["PYSPARK_PYTHON"] = sys.executable
    else:
        # For the workers, unless the environment names their Python.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    with nullcontext() if spark.cache is None else scratch_folder(spark.cache) as scratch:
        jvm = Jvm(
            memory=spark.memory,
            nice=spark.nice,
            is_local=spark.is_local,
            is_brief=spark.is_brief,
            java=spark.java,
            cache=None if spark.cache is None else class_cache(spark.cache),
            recording=None if scratch is None or spark.is_brief else scratch / "classes",
            scratch=scratch,
            log=spark.log,
        )
        started = jvm.start(_options(spark, scratch))
        try:
            with _driven(spark, started) as session:
                yield session, started
        except BaseException:
            started.process.kill()
            raise
        finally:
            _close(started.process)
            del os.environ["PYSPARK_GATEWAY_PORT"], os.environ["PYSPARK_GATEWAY_SECRET"]
        jvm.write_cache()


def _close(jvm: subprocess.Popen[bytes]) -> None:
    """Close the pipe and wait for the JVM's end; kill it after CLOSE_SECONDS."""
    assert jvm.stdin is not None
    jvm.stdin.close()
    try:
        jvm.wait(CLOSE_SECONDS)
    except subprocess.TimeoutExpired:
        jvm.kill()
        jvm.wait()


def _ending(jvm: StartedJvm | None) -> str | None:
    return None if jvm is None else jvm.ending(within=END_SECONDS)


class SparkSessions:
    """A Spark for consecutive runs of a process: started by the first run, ended with the block.

    All runs use the same `Spark`: a process has one at a time.
    """

    def __init__(self) -> None:
        self._ending = ExitStack()
        self._started: tuple[SparkSession, StartedJvm | None] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ending.__exit__(kind, error, trace)

    @contextmanager
    def used(self, spark: Spark) -> Iterator["SparkSession"]:
        """Yield the session for a run; errors of Spark stay readable after the session's end."""
        if self._started is None:
            self._started = self._ending.enter_context(_session_and_jvm(spark))
        session, jvm = self._started
        with _errors_of(spark, jvm):
            yield session


def _errors_of(spark: Spark, jvm: StartedJvm | None) -> AbstractContextManager[None]:
    return spark_errors(memory=spark.memory, log=spark.log, ending=partial(_ending, jvm))


@contextmanager
def _driven(spark: Spark, jvm: StartedJvm) -> Iterator["SparkSession"]:
    from py4j.protocol import Py4JError
    from pyspark import SparkContext

    session: SparkSession | None = None
    try:
        session = _started_session(spark, jvm)
        with _shipped(session) if not spark.is_local else nullcontext():
            yield session
    except BaseException:
        _kill_soon(spark, jvm)
        raise
    finally:
        # If the JVM has ended, the error of its end is raised already.
        with suppress(Py4JError, OSError):
            if session is not None:
                session.stop()
        # PySpark would pass the ended session's gateway to the next session of this process.
        gateway, SparkContext._gateway, SparkContext._jvm = SparkContext._gateway, None, None
        if gateway is not None:
            with suppress(Py4JError, OSError):
                gateway.shutdown()


def _kill_soon(spark: Spark, jvm: StartedJvm) -> None:
    """Kill the JVM before the session ends: at once, or when a cluster has had time to notice.

    It would write the recording, and might wait for the storage or the cluster.
    """
    killing = threading.Timer(0.0 if spark.is_local else END_SECONDS, jvm.process.kill)
    killing.daemon = True
    killing.start()


def _started_session(spark: Spark, jvm: StartedJvm) -> "SparkSession":
    """Return the session, or kill the JVM after START_SECONDS: a cluster may never answer."""
    from pyspark.sql import SparkSession

    deadline = threading.Timer(START_SECONDS, jvm.kill_late)
    deadline.daemon = True
    deadline.start()
    try:
        with _errors_of(spark, jvm):
            session = SparkSession.builder.getOrCreate()
    finally:
        deadline.cancel()
    jvm.has_session = True
    return session


@contextmanager
def _connected(spark: Spark) -> Iterator["SparkSession"]:
    from pyspark.sql import SparkSession

    with _errors_of(spark, None):
        session = SparkSession.builder.remote(spark.remote).getOrCreate()
    try:
        for name, value in _ANYWHERE.items():
            session.conf.set(name, value)
        with _shipped(session):
            yield session
    finally:
        session.stop()


def _options(spark: Spark, scratch: Path | None) -> dict[str, str]:
    """Return Spark's options; a cluster's own settings come from `spark-defaults.conf`.

    In `scratch` a local Spark keeps its files; a cluster has another place.
    """
    options = _ANYWHERE | {
        "spark.master": spark.master,
        "spark.app.name": "inturn history",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        # Otherwise each call on a frame or a column sends the call site to the JVM, and first
        # queries how deep to look: a tenth of a run.
        "spark.python.sql.dataFrameDebugging.enabled": "false",
        # A row group is held in memory, and a single body may be as large as a page.
        "spark.hadoop.parquet.block.size": str(16 * 1024 * 1024),
        "spark.hadoop.parquet.page.size.row.check.min": "8",
    }
    if spark.is_local:
        cores = os.cpu_count() or 1
        options |= {
            # The workers of a cluster must reach us; these are children of the JVM.
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
            "spark.sql.shuffle.partitions": str(cores),
            "spark.default.parallelism": str(cores),
            # Re-planning a query after each stage takes longer here than it saves.
            "spark.sql.adaptive.enabled": "false",
            # Hadoop sets the modes of files by this setting, not by the process's umask.
            "spark.hadoop.fs.permissions.umask-mode": "077",
            # Python workers import our modules as this process does.
            "spark.executorEnv.PYTHONPATH": str(CHECKOUT),
        }
        if scratch is not None:
            options["spark.local.dir"] = str(scratch)
    return options


@contextmanager
def _shipped(session: "SparkSession") -> Iterator[None]:
    """Let the workers import our modules for the duration of the block.

    They may run on other machines, with the packages of our lock but without our code. They fetch
    the file when their first task begins, so it exists as long as the block.
    """
    with tempfile.TemporaryDirectory(prefix="inturn-modules-") as folder:
        modules = Path(folder, "inturn.zip")
        with zipfile.ZipFile(modules, "w") as archive:
            for package in _SHIPPED:
                for file in sorted((CHECKOUT / package).rglob("*")):
                    if file.suffix in {".py", ".sql", ".lark"}:
                        archive.write(file, file.relative_to(CHECKOUT))
        session.addArtifacts(str(modules), pyfile=True)
        yield
