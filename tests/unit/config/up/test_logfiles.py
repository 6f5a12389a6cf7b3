"""Logs are shortened while they are written to."""

from pathlib import Path

import pytest

from config.up import logfiles
from config.up.logfiles import KEPT, open_log, rotate_logs


@pytest.fixture(autouse=True)
def _small_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logfiles, "MAX_BYTES", 10)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_file_over_the_limit_is_rotated_and_the_writer_starts_at_its_beginning(
    tmp_path: Path,
) -> None:
    with open_log(tmp_path, "web") as log:
        log.write(b"0123456789\n")
        log.flush()
        rotate_logs(tmp_path)
        log.write(b"after\n")
    assert contents(tmp_path) == {"web.log": b"after\n", "web.log.1": b"0123456789\n"}


def test_only_a_limited_number_of_files_is_kept(tmp_path: Path) -> None:
    for number in range(KEPT + 2):
        with open_log(tmp_path, "web") as log:
            log.write(b"number %09d" % number)
        rotate_logs(tmp_path)
    assert contents(tmp_path) == {
        "web.log": b"",
        "web.log.1": b"number 000000004",
        "web.log.2": b"number 000000003",
        "web.log.3": b"number 000000002",
    }


def test_a_short_one_stays_as_it_is(tmp_path: Path) -> None:
    with open_log(tmp_path, "web") as log:
        log.write(b"0123456789")
    rotate_logs(tmp_path)
    assert contents(tmp_path) == {"web.log": b"0123456789"}


def test_a_file_that_cannot_be_rotated_is_truncated(tmp_path: Path) -> None:
    (tmp_path / "web.log.1").mkdir()
    (tmp_path / "web.log.2").mkdir()
    (tmp_path / "web.log.2" / "full").touch()
    (tmp_path / "web.log.3").touch()
    with open_log(tmp_path, "web") as log:
        log.write(b"0123456789\n")
    rotate_logs(tmp_path)
    assert (tmp_path / "web.log").read_bytes() == b""
