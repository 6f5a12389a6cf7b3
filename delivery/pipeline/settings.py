"""Settings of Spark, archive and database for `delivery.history`, which does not import Django."""

from pathlib import Path
from typing import TYPE_CHECKING

from django.conf import settings
from psycopg.conninfo import make_conninfo

from delivery.database.connections import connection_parameters
from delivery.models import Step

if TYPE_CHECKING:
    from delivery.history.spark.session import Spark


def spark_settings(step: str, *, is_shared: bool = False) -> "Spark":
    """Return Spark's settings for a step, or for all steps with `is_shared`.

    Downloads and log are in the installation's home.
    """
    from delivery.history.spark.session import Spark

    environment = settings.ENVIRONMENT
    logs = environment.home / "logs"
    logs.mkdir(mode=0o700, parents=True, exist_ok=True)
    return Spark(
        master=environment.spark_master,
        remote=environment.spark_remote,
        memory=environment.spark_driver_memory,
        nice=environment.spark_nice,
        java=environment.spark_java_options,
        is_brief=step == Step.EXPORT and not is_shared,
        cache=environment.home / "cache" / "spark",
        log=logs / "spark.log",
    )


def archive_url() -> str:
    """Return the archive's location: an absolute folder, or a URL."""
    url: str = settings.ENVIRONMENT.history_url
    return url


def whole_days() -> int:
    """Return after how many days a scheduled verify checks the whole history; 0: never."""
    days: int = settings.ENVIRONMENT.history_whole_days
    return days


def reports_folder() -> Path:
    """Return the folder for reports: in the home, where no reader of the archive looks."""
    folder: Path = settings.ENVIRONMENT.home / "reports"
    return folder


def conninfo(application_name: str) -> str:
    """Return libpq's conninfo for connections to read whole tables.

    It omits the options by which short statements prefer indexes.
    """
    parameters = connection_parameters()
    options = parameters.pop("options", "")
    for option in settings.WALKS_INDEXES:
        options = options.replace(option, "")
    if options := " ".join(options.split()):
        parameters["options"] = options
    return make_conninfo(**parameters | {"application_name": application_name})
