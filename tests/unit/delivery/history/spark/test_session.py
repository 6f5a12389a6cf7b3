"""The product's own JVM: started from a wheel, and ended with the process that started it."""

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from config.env import CHECKOUT
from delivery.history.spark.jvm import JavaError, Jvm, spark_home

# Each starts a JVM of its own, or two.
pytestmark = pytest.mark.long
CHILD = """
import sys
from pathlib import Path
from delivery.history.spark.session import Spark, spark_session
spark = Spark(
    master="local[1]",
    memory="512m",
    nice=2 if sys.argv[3:] == ["wait"] else 0,
    is_brief=True,
    log=Path(sys.argv[1]),
)
for number in range(int(sys.argv[2])):
    with spark_session(spark) as session:
        print(session.range(5).count(), flush=True)
        if sys.argv[3:] == ["wait"]:
            sys.stdin.read()
"""

SHARED = """
import sys
from pathlib import Path
from delivery.history.spark.errors import SparkError
from delivery.history.spark.session import Spark, SparkSessions
spark = Spark(master="local[1]", memory="512m", nice=0, is_brief=True, log=Path(sys.argv[1]))
seen = set()
with SparkSessions() as sessions:
    for number in range(2):
        try:
            with sessions.used(spark) as session:
                seen.add(session.sparkContext.applicationId)
                session.sql("nonsense")
        except SparkError as error:
            print("nonsense" in str(error))
print(len(seen))
"""


KILLED = """
import os, signal, sys
from pathlib import Path
from delivery.history.spark.errors import SparkError
from delivery.history.spark.session import Spark, SparkSessions
folder = Path(sys.argv[1])
spark = Spark(
    master="local[1]",
    memory="512m",
    nice=0,
    is_brief=True,
    cache=folder / "cache",
    log=folder / "log",
)
try:
    with SparkSessions() as sessions, sessions.used(spark) as session:
        (scratch,) = folder.glob("cache/session-*")
        print(len(list(scratch.glob("blockmgr-*"))))
        # What a JVM unpacks there, it removes itself only if it is not killed.
        print(session._jvm.System.getProperty("java.io.tmpdir") == str(scratch))
        java = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split()
        os.kill(int(java[0]), signal.SIGKILL)
        session.range(5).count()
except SparkError as error:
    print(str(error).splitlines()[0])
"""


WORKERS = """
import sys
from pathlib import Path
from delivery.history.spark.session import Spark, spark_session
home = Path(sys.argv[1])
spark = Spark(
    master="local[1]",
    memory="512m",
    nice=0,
    is_brief=True,
    cache=home / "cache",
    log=home / "log",
)
with spark_session(spark) as session:
    numbers = session.sparkContext.parallelize([1], 1)
    print(*numbers.map(lambda _: sys.executable).collect())
"""


def command(log: Path, *arguments: str) -> list[str]:
    return [sys.executable, "-c", CHILD, str(log), *arguments]


@pytest.mark.slow
def test_sessions_can_be_opened_one_after_another(tmp_path: Path) -> None:
    done = subprocess.run(
        command(tmp_path / "log", "2"), cwd=CHECKOUT, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "5\n5\n", "")


@pytest.mark.slow
def test_runs_that_share_one_have_their_errors_in_words_and_leave_it_to_the_next(
    tmp_path: Path,
) -> None:
    command = [sys.executable, "-c", SHARED, str(tmp_path / "log")]
    done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "True\nTrue\n1\n", "")


@pytest.mark.slow
def test_a_killed_jvm_is_named_with_its_log_and_leaves_no_files(tmp_path: Path) -> None:
    command = [sys.executable, "-c", KILLED, str(tmp_path)]
    done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    count, is_own, error = done.stdout.splitlines()
    assert (count, is_own) == ("1", "True")
    assert error.startswith("Spark's JVM was killed. If the machine's memory ran out, free some,")
    assert not list(tmp_path.glob("cache/session-*"))


@pytest.mark.slow
def test_the_jvm_has_its_priority_and_ends_with_its_python(tmp_path: Path) -> None:
    # Not as low as an installation's: beside other tests it would take minutes.
    with subprocess.Popen(
        command(tmp_path / "log", "1", "wait"),
        cwd=CHECKOUT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "5\n"
        (java,) = _children(child.pid)
        assert (
            os.getpriority(os.PRIO_PROCESS, java) == os.getpriority(os.PRIO_PROCESS, child.pid) + 2
        )
        group = Path(f"/proc/{java}/autogroup")
        assert not group.exists() or group.read_text().endswith(" nice 2\n")
        watched = os.pidfd_open(java)
        child.send_signal(signal.SIGKILL)
        child.wait()
        _wait_for(watched)


def test_a_jvm_that_cannot_start_says_why_and_names_its_log(tmp_path: Path) -> None:
    jvm = Jvm(memory="1x", log=tmp_path / "spark.log")
    why = r"ended at its start \(exit code 1\): Invalid maximum heap size.*Its log is .*spark.log"
    with pytest.raises(JavaError, match=why):
        jvm.start({})


FOREIGN = {
    "SPARK_CONF_DIR": "/nowhere",
    "SPARK_LOCAL_DIRS": "/proc/nowhere",
    "SPARK_HOME": "/opt/spark-2.4",
    "PYSPARK_SUBMIT_ARGS": "--master yarn",
    "HADOOP_CONF_DIR": "/nowhere",
    "CLASSPATH": "/nowhere.jar",
    "JAVA_TOOL_OPTIONS": "-javaagent:/nowhere.jar",
    "JDK_JAVA_OPTIONS": "-Xnonsense",
    "_JAVA_OPTIONS": "-Xnonsense",
}


def test_no_foreign_variable_reaches_a_jvm_of_this_machine(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name, value in FOREIGN.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("LC_ALL", "POSIX")
    own = Jvm(memory="1g", log=tmp_path / "log").environment()
    assert own.keys() & FOREIGN.keys() == set()
    assert (own["LC_ALL"], own["SPARK_LOCAL_IP"]) == ("C.UTF-8", "127.0.0.1")
    assert own["PATH"] == os.environ["PATH"]


def test_the_driver_of_a_cluster_keeps_its_administrators_variables(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name, value in FOREIGN.items():
        monkeypatch.setenv(name, value)
    driver = Jvm(memory="1g", is_local=False, log=tmp_path / "log").environment()
    assert driver["SPARK_CONF_DIR"] == "/nowhere"
    assert "SPARK_LOCAL_IP" not in driver
    assert driver["SPARK_HOME"] == str(spark_home())


# Another name of the host, which nothing resolves; root may give it.
RENAMED = ["unshare", "--uts", "sh", "-c", 'hostname nowhere && exec "$@"', "sh"]


def can_rename() -> bool:
    with suppress(OSError):
        return subprocess.run([*RENAMED, "true"], capture_output=True, check=False).returncode == 0
    return False


@pytest.mark.slow
@pytest.mark.skipif(not can_rename(), reason="needs root, to rename the host")
def test_spark_starts_and_has_workers_in_foreign_surroundings(tmp_path: Path) -> None:
    home = tmp_path / "höme"
    home.mkdir()
    settings = tmp_path / "conf"
    settings.mkdir()
    (settings / "spark-defaults.conf").write_text(
        "spark.eventLog.enabled true\nspark.eventLog.dir file:///nowhere\n"
    )
    environment = os.environ | FOREIGN | {"LC_ALL": "POSIX", "PYSPARK_PYTHON": "/nowhere/python"}
    done = subprocess.run(
        [*RENAMED, sys.executable, "-c", WORKERS, str(home)],
        env=environment | {"SPARK_CONF_DIR": str(settings), "PYTHONPATH": str(CHECKOUT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, f"{sys.executable}\n"), done.stderr


def _children(pid: int) -> list[int]:
    return [int(id) for id in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _wait_for(watched: int) -> None:
    import select

    ended, _, _ = select.select([watched], [], [], 60)
    os.close(watched)
    assert ended
