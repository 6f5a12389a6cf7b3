"""The archive's storage: its time-outs, its probe, and that no text has its secrets."""

import pickle
from dataclasses import fields
from pathlib import Path

import pytest
from pyarrow import fs

from delivery.history.archive.archive import Archive
from delivery.history.archive.storage import (
    StorageProbe,
    file_system_at,
    require_recent_answer,
    require_storage,
)
from delivery.history.job import StepJob
from delivery.history.postgres.extract import Extraction
from delivery.history.spark.reach import ReachError, shown_place
from delivery.history.spark.session import Spark
from tests.support.silent_server import silent_server
from tests.system.operation.installation import eventually

S3 = "s3a://key:hidden@bucket/inturn?region=eu-west-1&scheme=http&endpoint_override=127.0.0.1:1"


def test_s3_has_time_outs_and_keeps_what_its_url_says() -> None:
    files, path = file_system_at(S3)
    # Workers get it by pickle.
    for copy in (files, pickle.loads(pickle.dumps(files))):  # noqa: S301 - ours
        _, (options,) = copy.__reduce__()
        assert (options["connect_timeout"], options["request_timeout"]) == (3.0, 10.0)
        assert (options["access_key"], options["secret_key"]) == ("key", "hidden")
        assert (options["region"], options["scheme"]) == ("eu-west-1", "http")
        assert options["endpoint_override"] == "127.0.0.1:1"
    assert path == "bucket/inturn"


@pytest.mark.parametrize(
    ("url", "seconds"),
    [
        ("gs://anonymous@bucket/inturn", 30),
        ("gs://anonymous@bucket/inturn?scheme=http", 30),
        ("gs://anonymous@bucket/inturn?retry_limit_seconds=7", 7),
    ],
)
def test_attempts_at_google_end(url: str, seconds: int) -> None:
    files, path = file_system_at(url)
    _, (options,) = files.__reduce__()
    assert options["retry_time_limit"].total_seconds() == seconds
    assert path == "bucket/inturn"


def test_a_folder_and_one_that_is_yet_to_be_made_are_answers(tmp_path: Path) -> None:
    require_storage(str(tmp_path))
    require_storage(str(tmp_path / "archive"))
    assert isinstance(Archive(str(tmp_path)).files, fs.LocalFileSystem)


def test_an_answer_counts_for_a_while(tmp_path: Path) -> None:
    place = tmp_path / "archive"
    require_recent_answer(str(place))
    place.touch()
    require_recent_answer(str(place))
    with pytest.raises(ReachError, match="it is a file, and must be a folder"):
        require_storage(str(place))


def test_a_probe_without_an_answer_can_be_left() -> None:
    with silent_server() as server:
        probe = StorageProbe(
            f"gs://anonymous@bucket?scheme=http&endpoint_override={server.address}"
        )
        assert server.is_asked.wait(60)
        assert not probe.has_answer
        with pytest.raises(ReachError, match="its storage has not answered for 0 s"):
            probe.require(within=0.0)
        probe.close()
        eventually(lambda: probe.has_answer, "its process has ended")


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        (S3, "s3a://bucket/inturn"),
        ("abfs://container@account/inturn", "abfs://container@account/inturn"),
        ("abfs://:hidden@account/inturn", "abfs://account/inturn"),
        ("/var/archive", "/var/archive"),
    ],
)
def test_a_place_is_shown_without_its_secrets(url: str, shown: str) -> None:
    assert shown_place(url) == shown


def test_no_text_of_a_job_has_its_password_or_token() -> None:
    hidden = {
        kind.__name__: {field.name for field in fields(kind) if not field.repr}
        for kind in (StepJob, Extraction, Spark)
    }
    assert hidden["StepJob"] >= {"conninfo"}
    assert hidden["Extraction"] >= {"conninfo"}
    assert "hidden" not in repr(Spark(remote="sc://host:15002/;token=hidden"))
