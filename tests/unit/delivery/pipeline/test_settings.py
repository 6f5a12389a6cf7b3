"""The settings of Spark and archive reader: this installation's, none for short statements."""

import dataclasses
from pathlib import Path

import psycopg
import pytest
from django.conf import settings
from django.db import connection
from psycopg.conninfo import conninfo_to_dict

from delivery.models import Step
from delivery.pipeline import settings as surroundings


@pytest.mark.django_db
def test_whole_tables_are_read_without_index_scans() -> None:
    with psycopg.connect(surroundings.conninfo("test")) as reader:
        shown = reader.execute(
            "SELECT current_database(), current_setting('enable_seqscan'), "
            "current_setting('enable_hashjoin'), "
            "current_setting('plan_cache_mode'), current_setting('application_name')"
        ).fetchone()
    assert shown == (connection.settings_dict["NAME"], "on", "on", "auto", "test")


def test_an_administrators_connection_options_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    options = " ".join((*settings.WALKS_INDEXES, "-c search_path=inturn"))
    monkeypatch.setitem(connection.settings_dict["OPTIONS"], "options", options)
    assert conninfo_to_dict(surroundings.conninfo("test"))["options"] == "-c search_path=inturn"


def test_spark_is_configured_from_the_settings(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    given = dataclasses.replace(
        settings.ENVIRONMENT,
        home=tmp_path,
        history_url="s3a://bucket",
        spark_master="local[2]",
        spark_driver_memory="2g",
        spark_nice=0,
        spark_java_options=("-Dname=value",),
    )
    monkeypatch.setattr(settings, "ENVIRONMENT", given)
    spark = surroundings.spark_settings(Step.VERIFY)
    assert (spark.master, spark.remote, spark.memory, spark.nice) == ("local[2]", "", "2g", 0)
    assert spark.java == ("-Dname=value",)
    assert spark.log.parent.is_dir()
    assert surroundings.archive_url() == "s3a://bucket"
