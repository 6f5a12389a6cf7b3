"""Each wrong place of the archive or of Spark ends the run with one true sentence."""

import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from django.utils import timezone

from delivery.models import PipelineRun, RunState
from delivery.states import Status
from tests.support import factories
from tests.support.silent_server import full_queue, silent_server
from tests.unit.delivery.history.commands import ended_history

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.long]

AWS = {
    "AWS_REGION": "us-east-1",
    "AWS_ACCESS_KEY_ID": "test",
    "AWS_SECRET_ACCESS_KEY": "hidden",
    "AWS_EC2_METADATA_DISABLED": "true",
}
NOT_IN_TIME = "its storage has not answered for 8 s"
UNANSWERED = "it does not answer within 8 s"
REFUSED = r"no connection \(Connection refused\)"

ARCHIVES = [
    ("{file}", "it is a file, and must be a folder"),
    ("{file}/archive", "Not a directory"),
    ("{readonly}/archive", "No such file or directory: '/proc/archive'"),
    ("ftp://nowhere.invalid/archive", "Unrecognized filesystem type in URI"),
    ("https://nowhere.invalid/archive", "Unrecognized filesystem type in URI"),
    ("hdfs://127.0.0.1:1/archive", "libjvm|libhdfs"),
    ("s3a://key:hidden@bucket/a?scheme=http&endpoint_override={silent}", NOT_IN_TIME),
    pytest.param(
        "s3a://key:hidden@bucket/a?scheme=http&endpoint_override={full}", "", marks=pytest.mark.slow
    ),
    ("s3a://key:hidden@bucket/a?scheme=http&endpoint_override=127.0.0.1:1", "connect"),
    ("gs://anonymous@bucket/a?scheme=http&endpoint_override={silent}", NOT_IN_TIME),
    ("gs://anonymous@bucket/a?scheme=http&endpoint_override=127.0.0.1:1", ""),
    ("abfs://container@nowhere/archive", "credential|Credential"),
]
SPARKS = [
    ("SPARK_MASTER", "spark://127.0.0.1:1", REFUSED),
    ("SPARK_MASTER", "spark://{silent}", UNANSWERED),
    pytest.param("SPARK_MASTER", "spark://{full}", UNANSWERED, marks=pytest.mark.slow),
    pytest.param("SPARK_MASTER", "spark://{silent},127.0.0.1:1", REFUSED, marks=pytest.mark.slow),
    ("SPARK_MASTER", "spark://nowhere.invalid:7077", "there is no host of this name"),
    ("SPARK_MASTER", "yarn", "HADOOP_CONF_DIR or YARN_CONF_DIR"),
    ("SPARK_MASTER", "k8s://https://127.0.0.1:1", REFUSED),
    pytest.param("SPARK_MASTER", "k8s://{silent}", UNANSWERED, marks=pytest.mark.slow),
    ("SPARK_REMOTE", "sc://127.0.0.1:1/;token=hidden", re.escape("pip install 'pyspark[connect]'")),
]
SETTINGS = [
    ({"SPARK_MASTER": "foo"}, "SPARK_MASTER: 'foo' is not like local"),
    ({"HISTORY_URL": "s3a:///archive"}, "HISTORY_URL: 's3a:///archive' is not an absolute folder"),
    ({"SPARK_REMOTE": "foo"}, "SPARK_REMOTE: 'foo' is not like sc://"),
    ({"SPARK_MASTER": "local", "SPARK_REMOTE": "sc://here"}, "are both given"),
]


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Places that are there and of no use."""
    file = tmp_path_factory.mktemp("places") / "file"
    file.touch()
    with silent_server() as silent, full_queue() as full:
        # Also root may not write there.
        yield {"file": str(file), "readonly": "/proc", "silent": silent.address, "full": full}


def error_of(tmp_path: Path, step: str, environment: dict[str, str]) -> str:
    """Run the step; return the one line that it ends with, which its run has as well."""
    ended = ended_history(step, archive=tmp_path / "archive", **environment)
    assert ended.returncode == 1, ended.stderr
    assert "Traceback" not in ended.stderr
    assert "hidden" not in ended.stderr
    run = PipelineRun.objects.get()
    assert (run.state, "hidden" in run.log) == (RunState.FAILED, False)
    last = ended.stderr.splitlines()[-1]
    assert last == f"CommandError: {run}: FAILED. {run.error}"
    return run.error


@pytest.mark.parametrize(("url", "reason"), ARCHIVES)
def test_a_wrong_archive_is_named_with_the_reason(
    tmp_path: Path, places: dict[str, str], url: str, reason: str
) -> None:
    # An export without rows writes nothing.
    published_at = timezone.now() - timedelta(days=1)
    factories.delivery(Status.DELIVERED, message=factories.message(published_at=published_at))
    error = error_of(tmp_path, "export", AWS | {"HISTORY_URL": url.format(**places)})
    assert re.search(reason, error)
    assert "HISTORY_URL" in error
    assert error.endswith("again.")


@pytest.mark.parametrize(("name", "value", "reason"), SPARKS)
def test_a_wrong_place_of_spark_is_named_with_the_reason(
    tmp_path: Path, places: dict[str, str], name: str, value: str, reason: str
) -> None:
    value = value.format(**places)
    error = error_of(tmp_path, "verify", {name: value})
    assert error.startswith(f"{name}={value.partition('/;')[0]}")
    assert re.search(reason, error)
    assert error.endswith("again.")


@pytest.mark.parametrize(("environment", "reason"), SETTINGS)
def test_a_wrong_setting_of_spark_begins_no_run(
    tmp_path: Path, environment: dict[str, str], reason: str
) -> None:
    ended = ended_history("verify", archive=tmp_path / "archive", **environment)
    assert ended.returncode == 1
    (line,) = ended.stderr.splitlines()
    assert reason in line
    assert not PipelineRun.objects.exists()
