"""The settings of the history: the archive's place, and Spark's master."""

from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from config import env


def read(home: Path, **given: str) -> env.Environment:
    return env.read_environment({"INTURN_HOME": str(home)} | given)


def test_the_history_defaults_to_this_machine(tmp_path: Path) -> None:
    found = read(tmp_path)
    assert found.history_url == str(tmp_path / "archive")
    assert (found.spark_master, found.spark_remote) == ("local[*]", "")
    assert (found.spark_driver_memory, found.spark_nice) == ("1g", 10)
    assert found.spark_java_options == ()


def test_javas_options_are_words(tmp_path: Path) -> None:
    found = read(tmp_path, SPARK_JAVA_OPTIONS=" -Dfirst=1  -Dsecond=2 ")
    assert found.spark_java_options == ("-Dfirst=1", "-Dsecond=2")


def test_a_folder_is_kept(tmp_path: Path) -> None:
    place = tmp_path / "my archive"
    assert read(tmp_path, HISTORY_URL=f"{place}/").history_url == str(place)


@pytest.mark.parametrize("place", ["archive", "./archive", "../archive", "relative/x", "."])
def test_a_relative_folder_is_refused(tmp_path: Path, place: str) -> None:
    """Each process would have its own archive, by the folder in which it was started."""
    with pytest.raises(ImproperlyConfigured, match=r"HISTORY_URL: .* is not an absolute folder"):
        read(tmp_path, HISTORY_URL=place)


@pytest.mark.parametrize("url", ["s3a://bucket", "s3a://bucket/inturn", "hdfs://name:8020/inturn"])
def test_a_url_is_kept(tmp_path: Path, url: str) -> None:
    assert read(tmp_path, HISTORY_URL=f"{url}/").history_url == url


@pytest.mark.parametrize(
    "master", ["local", "local[4]", "spark://a:7077,b:7077", "yarn", "k8s://https://a"]
)
def test_spark_may_run_elsewhere(tmp_path: Path, master: str) -> None:
    assert read(tmp_path, SPARK_MASTER=master).spark_master == master


@pytest.mark.parametrize("memory", ["512m", "1500m", "2g", "64g"])
def test_the_drivers_memory_is_as_the_jvm_has_it(tmp_path: Path, memory: str) -> None:
    assert read(tmp_path, SPARK_DRIVER_MEMORY=memory).spark_driver_memory == memory


def test_spark_runs_in_one_place(tmp_path: Path) -> None:
    assert read(tmp_path, SPARK_REMOTE="sc://a:15002").spark_remote == "sc://a:15002"
    with pytest.raises(
        ImproperlyConfigured, match=r"SPARK_MASTER and SPARK_REMOTE are both given.*unset one"
    ):
        read(tmp_path, SPARK_REMOTE="sc://a:15002", SPARK_MASTER="local[2]")
