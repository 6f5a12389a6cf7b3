"""Spark's JVM in processes of tests: a few rows, in a run over before the JVM is fast.

The tests wait for it, while others keep the machine busy: it has the usual priority.
"""

from pathlib import Path

from delivery.history.spark.jvm import class_cache

# The slowest compilation tier never pays off. Without a class cache each start verifies some
# thousands of classes.
JAVA = (
    "-XX:TieredStopAtLevel=1",
    "-XX:+UnlockDiagnosticVMOptions",
    "-XX:-BytecodeVerificationRemote",
)
ENVIRONMENT = {
    "SPARK_JAVA_OPTIONS": " ".join(JAVA),
    # Of a cluster's machines.
    "JAVA_TOOL_OPTIONS": " ".join(JAVA),
    "SPARK_NICE": "0",
}


def without_class_cache(home: Path) -> None:
    """Keep a home's first run from writing the cache, which takes 20 s of processor time.

    The JVM ignores an empty value. Exports write none.
    """
    folder = home / "cache" / "spark"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    class_cache(folder).file.touch()
