"""Only a complete and unchanged back-up is used; an unfinished restore blocks its home."""

from dataclasses import replace
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from config.backup import restore_marker
from config.backup.manifest import (
    BackupError,
    Manifest,
    describe_files,
    read_manifest,
    write_manifest,
)
from config.backup.restoring import Restore
from config.env import read_environment
from config.up.child import print_line

MANIFEST = Manifest(
    format=1,
    version="0.1.0",
    made_at="2026-01-31T12:00:00+00:00",
    postgresql=18,
    epoch=0,
    migrations=["delivery.0001_initial"],
    counts={"waiting": 3},
    files={},
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "backup"
    folder.mkdir()
    (folder / "database.dump").write_bytes(b"dumped")
    write_manifest(folder, replace(MANIFEST, files=describe_files(folder)))
    return folder


def test_a_complete_back_up_is_read(folder: Path) -> None:
    found = read_manifest(folder)
    assert (found.counts, found.moment.year) == ({"waiting": 3}, 2026)


def test_a_changed_or_incomplete_back_up_is_refused(folder: Path) -> None:
    (folder / "database.dump").write_bytes(b"dumpet")
    with pytest.raises(BackupError, match="was changed or is damaged"):
        read_manifest(folder)
    (folder / "database.dump").unlink()
    with pytest.raises(BackupError, match="is missing"):
        read_manifest(folder)
    (folder / "manifest.json").write_text('{"format"')
    with pytest.raises(BackupError, match="is damaged"):
        read_manifest(folder)
    (folder / "manifest.json").unlink()
    with pytest.raises(BackupError, match="complete back-up"):
        read_manifest(folder)


def test_a_back_up_of_another_format_names_its_version(tmp_path: Path) -> None:
    write_manifest(tmp_path, replace(MANIFEST, format=2, version="7.0.0"))
    with pytest.raises(BackupError, match=r"use Inturn 7\.0\.0"):
        read_manifest(tmp_path)


def test_a_back_up_of_a_newer_version_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    backup, home = tmp_path / "backup", tmp_path / "home"
    backup.mkdir()
    write_manifest(
        backup, replace(MANIFEST, version="7.0.0", migrations=["delivery.9999_tomorrow"])
    )
    restore = Restore(backup, read_environment({"INTURN_HOME": str(home)}), print_line)
    with pytest.raises(BackupError, match="which this version does not have"):
        restore.run_restore()
    assert not (home / restore_marker.MARKER).exists()


def test_a_home_with_a_database_is_not_overwritten(folder: Path, tmp_path: Path) -> None:
    data = tmp_path / "home" / "postgresql-18" / "data"
    data.mkdir(parents=True)
    restore = Restore(folder, read_environment({"INTURN_HOME": str(tmp_path / "home")}), print_line)
    with pytest.raises(BackupError, match="is not empty"):
        restore.run_restore()
    assert data.exists()


def test_a_home_with_an_unfinished_restore_serves_nothing(folder: Path, tmp_path: Path) -> None:
    restore_marker.require_no_unfinished_restore(tmp_path)
    restore_marker.begin_restore(tmp_path, folder)
    with pytest.raises(ImproperlyConfigured, match=f"restore --from {folder}"):
        restore_marker.require_no_unfinished_restore(tmp_path)
    restore_marker.end_restore(tmp_path)
    restore_marker.require_no_unfinished_restore(tmp_path)
