"""The cache of the JVM's classes: recorded by a run, written after it, tried once a day."""

import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from delivery.history.spark.class_cache import ClassCache
from delivery.history.spark.jvm import class_cache
from delivery.history.spark.session import Spark

RECORDS = "-XX:AOTMode=record"
# In place of a JVM: a program that does with the files what a JVM does.
CREATES = """
import sys
from pathlib import Path
given = dict(word.removeprefix("-XX:").split("=", 1) for word in sys.argv[1:] if "-XX:" in word)
assert given["AOTMode"] == "create"
Path(given["AOTCache"]).write_bytes(b"cache of " + Path(given["AOTConfiguration"]).read_bytes())
"""


@pytest.fixture
def cache(tmp_path: Path) -> ClassCache:
    return ClassCache.in_folder(tmp_path, classpath="some.jar")


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    return tmp_path / "session" / "classes"


def write(cache: ClassCache, recording: Path) -> None:
    with (recording.parent.parent / "log").open("wb") as log:
        cache.write([sys.executable, "-c", CREATES], recording, log=log)


def test_the_first_run_records_and_later_ones_use_the_cache(
    cache: ClassCache, recording: Path
) -> None:
    assert RECORDS in cache.options(recording)
    recording.parent.mkdir()
    recording.write_bytes(b"classes")
    write(cache, recording)
    assert cache.file.read_bytes() == b"cache of classes"
    assert cache.options(recording)[1:] == [f"-XX:AOTCache={cache.file}"]


def test_asking_for_the_options_writes_nothing(
    cache: ClassCache, recording: Path, tmp_path: Path
) -> None:
    for asked in (recording, None):
        cache.options(asked)
    assert list(tmp_path.iterdir()) == []
    assert RECORDS not in cache.options(None)


def test_after_a_failure_the_runs_of_a_day_do_not_try_again(
    cache: ClassCache, recording: Path, tmp_path: Path
) -> None:
    write(cache, recording)
    assert not cache.file.exists()
    assert RECORDS not in cache.options(recording)
    (tried,) = tmp_path.glob("*.tried")
    os.utime(tried, (0, 0))
    assert RECORDS in cache.options(recording)


def test_a_session_says_whether_its_end_writes_the_cache(tmp_path: Path) -> None:
    spark = Spark(cache=tmp_path)
    assert spark.saves_classes
    assert not replace(spark, is_brief=True).saves_classes
    assert not replace(spark, cache=None).saves_classes
    class_cache(tmp_path).file.touch()
    assert not spark.saves_classes


def test_another_class_path_has_another_cache(cache: ClassCache, tmp_path: Path) -> None:
    assert ClassCache.in_folder(tmp_path, classpath="other.jar") != cache
