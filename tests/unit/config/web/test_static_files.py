"""Static files are collected once for each state of their sources, whole, hashed and compressed."""

import gzip
import json
import os
from pathlib import Path

import brotli
import pytest
from django.contrib.staticfiles.storage import staticfiles_storage
from pytest_django import Settings

from config.web.static_files import HashedFiles, collect_static_files


@pytest.fixture
def root(tmp_path: Path, settings: Settings) -> Path:
    settings.STATIC_ROOT = tmp_path / "static" / "of-these-sources"
    return tmp_path / "static" / "of-these-sources"


def test_each_file_has_its_hash_in_its_name_and_is_compressed(root: Path) -> None:
    collect_static_files()
    hashed = HashedFiles(location=root).url("console/console.css")
    assert hashed.startswith("/static/console/console.")
    assert hashed != "/static/console/console.css"
    file = root / hashed.removeprefix("/static/")
    content = file.read_bytes()
    assert brotli.decompress(Path(f"{file}.br").read_bytes()) == content
    assert gzip.decompress(Path(f"{file}.gz").read_bytes()) == content
    assert not (root / "console/console.css").exists()
    # Styles name other files by their hashed names.
    names = json.loads((root / "staticfiles.json").read_text())["paths"]
    fonts = (root / names["fonts/fonts.css"]).read_text()
    assert Path(names["fonts/icons.woff2"]).name in fonts


def test_they_are_collected_again_only_with_other_sources(root: Path) -> None:
    for name in ("older", "old"):
        (root.parent / name).mkdir(parents=True)
    os.utime(root.parent / "older", (0, 0))
    collect_static_files()
    # The one before stays, for pages that are open.
    assert {path.name for path in root.parent.iterdir()} == {"old", root.name}
    before = root.stat().st_mtime_ns
    collect_static_files()
    assert root.stat().st_mtime_ns == before


def test_a_folder_left_by_a_killed_process_is_no_obstacle(root: Path) -> None:
    (root.parent / "unfinished-1").mkdir(parents=True)
    # As the tests create it.
    root.mkdir()
    collect_static_files()
    assert (root / "staticfiles.json").exists()


def test_without_collected_files_each_has_its_own_name() -> None:
    assert staticfiles_storage.url("console/console.css") == "/static/console/console.css"
