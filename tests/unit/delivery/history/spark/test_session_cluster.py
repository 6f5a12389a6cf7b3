"""The pipeline on a cluster, with its archive in a folder or on S3: only settings differ."""

import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from django.utils import timezone

from config.env import CHECKOUT
from delivery.models import ArchiveFile, HistoryHour, PipelineRun, RunState
from delivery.states import Status
from tests.support import ci_tools, factories
from tests.support.brief_spark import ENVIRONMENT
from tests.support.s3_server import BUCKET, s3_server
from tests.unit.delivery.history.cluster import SparkCluster, cluster
from tests.unit.delivery.history.commands import SECONDS, history

# A worker's report: the place of the product's modules, and the content of a file that is no
# module.
WHERE = """
import json, sys
from pathlib import Path
from delivery.history.spark.session import Spark, spark_session

def look(_number):
    import os
    import delivery.history.postgres.source, subscriptions.filters.to_spark
    from delivery.database.statements import statement
    places = [delivery.history.postgres.source.__file__, subscriptions.filters.to_spark.__file__]
    return places, os.getcwd(), statement("archive_messages")[:2]

with spark_session(Spark(master=sys.argv[1], log=Path(sys.argv[2]))) as session:
    print(json.dumps(session.sparkContext.parallelize(range(4), 2).map(look).collect()))
"""


FOLDER, S3 = "folder", "S3"
ON_S3 = pytest.param(S3, marks=pytest.mark.skipif(bool(ci_tools.MISSING), reason=ci_tools.MISSING))


@pytest.fixture(scope="module")
def storage(request: pytest.FixtureRequest) -> Iterator[dict[str, str]]:
    """The environment that has the archive on a server of S3; empty, if it is in a folder."""
    if request.param == FOLDER:
        yield {}
        return
    with s3_server() as environment:
        yield environment | {"HISTORY_URL": f"s3a://{BUCKET}/inturn"}


@pytest.fixture(scope="module")
def running(
    tmp_path_factory: pytest.TempPathFactory, storage: dict[str, str]
) -> Iterator[SparkCluster]:
    with cluster(tmp_path_factory.mktemp("cluster"), storage | ENVIRONMENT) as found:
        yield found


@pytest.mark.slow
@pytest.mark.timeout(2 * SECONDS)
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("storage", [FOLDER, ON_S3], indirect=True)
def test_the_whole_pipeline_runs_on_a_cluster(
    running: SparkCluster, storage: dict[str, str], tmp_path: Path
) -> None:
    for days in (2, 1):
        factories.delivery(
            Status.DELIVERED,
            message=factories.message(published_at=timezone.now() - timedelta(days=days)),
        )
    environment = {
        "SPARK_MASTER": running.url,
        "SPARK_CONF_DIR": str(running.settings),
        "SPARK_LOCAL_IP": "127.0.0.1",
    } | storage
    history("all", archive=tmp_path / "archive", **environment)
    assert (tmp_path / "archive").exists() == (not storage)
    assert set(PipelineRun.objects.values_list("step", "state")) == {
        (step, RunState.DONE) for step in ("EXPORT", "ROLLUP", "VERIFY")
    }
    assert sum(ArchiveFile.objects.filter(table="deliveries").values_list("rows", flat=True)) == 2
    assert HistoryHour.objects.count() == 2
    # All three ran as one application of the cluster, which was sent the product's modules.
    assert len(list(running.work.glob("*/*/inturn.zip"))) == 1


@pytest.mark.slow
@pytest.mark.parametrize("storage", [FOLDER], indirect=True)
def test_workers_load_our_modules_from_the_sent_zip(running: SparkCluster, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WHERE, running.url, str(tmp_path / "log")],
        cwd=CHECKOUT,
        env=os.environ | {"SPARK_LOCAL_IP": "127.0.0.1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert str(CHECKOUT) not in done.stdout.replace(str(CHECKOUT / ".venv"), "")
    assert done.stdout.count("inturn.zip") == 8
    assert done.stdout.count('"--"') == 4
