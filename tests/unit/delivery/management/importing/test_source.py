"""Files that are no exports of another system: a sentence with the place, never a traceback."""

import json
import os
from importlib import import_module
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from delivery.management.importing import source
from delivery.management.importing.import_result import SourceError
from delivery.management.importing.source import csv_rows, parse_source, read_source

SYSTEMS = tuple(import_module("delivery.management.commands.import").IMPORTERS)


def refusal(system: str, path: Path) -> str:
    with pytest.raises(CommandError) as refused:
        call_command("import", system, str(path), stdout=StringIO(), stderr=StringIO())
    return str(refused.value)


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"[" * 100_000, "nested deeper than 100 levels"),
        (b'[{"a":' * 200 + b"1" + b"}]" * 200, "nested deeper than 100 levels"),
        (
            b'[{"EventName": "A",\n "n": 1' + b"0" * 5000 + b"}]",
            "it holds a number of more than 4,300 digits",
        ),
        (b'[{"EventName": "A"},\n {"EventName": }]', "(line 2, column 16)"),
        (b'[{"EventName": NaN}]', "NaN is not JSON"),
        (b'["\\ud800"]', "half of a character"),
        ('[{"EventName": "Ä"},\n "Ä"]'.encode("latin-1"), "is not UTF-8 (line 1, byte 17 of it)"),
        ("[1]".encode("utf-16"), "is UTF-16"),
        ("[1]".encode("utf-16-le"), "has a NUL byte (line 1, byte 2 of it)"),
        (b"[{}]\n\0", "has a NUL byte (line 2, byte 1 of it)"),
        (b"", "expected"),
        (b"\xef\xbb\xbf{}", "expected"),
    ],
)
def test_a_file_that_is_no_export_is_refused_in_a_sentence(
    system: str, content: bytes, words: str, tmp_path: Path
) -> None:
    path = tmp_path / "export.json"
    path.write_bytes(content)
    said = refusal(system, path)
    if content:
        assert words in said
    assert said.endswith((".", "expected."))


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_folder_a_missing_and_a_forbidden_file_are_named(system: str, tmp_path: Path) -> None:
    assert refusal(system, tmp_path) == f"{tmp_path} cannot be read: Is a directory."
    missing = tmp_path / "missing.json"
    assert refusal(system, missing) == f"{missing} cannot be read: No such file or directory."
    loop = tmp_path / "loop.json"
    loop.symlink_to(loop)
    assert "Too many levels of symbolic links" in refusal(system, loop)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
def test_a_file_without_permission_is_named(tmp_path: Path) -> None:
    path = tmp_path / "closed.json"
    path.write_text("[]")
    path.chmod(0)
    assert refusal("eventqueue", path) == f"{path} cannot be read: Permission denied."


def test_a_file_beyond_the_limit_is_not_read_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "MAX_DOCUMENT_BYTES", 10)
    path = tmp_path / "big.json"
    path.write_bytes(b"[" + b" " * 20 + b"]")
    assert "has 22 bytes, more than the 10 that an import reads" in refusal("workfront", path)
    path.write_bytes(b"[" + b" " * 8 + b"]")
    assert read_source(path) == "[        ]"


def test_a_byte_order_mark_is_no_part_of_the_text(tmp_path: Path) -> None:
    path = tmp_path / "export.csv"
    path.write_bytes(b"\xef\xbb\xbfEventName\nA\n")
    assert csv_rows(read_source(path)) == [{"EventName": "A"}]
    assert parse_source("\ufeff[1]") == [1]


def test_a_cell_that_never_ends_is_refused_with_its_line() -> None:
    with pytest.raises(SourceError, match=r"not CSV: field larger than .* \(line 3\)"):
        csv_rows('EventName,Note\nA,x\nB,"' + "x" * 1_100_000)


def test_a_sample_with_a_huge_number_is_reported_as_no_json(tmp_path: Path) -> None:
    path = tmp_path / "export.json"
    path.write_text(json.dumps([{"EventName": "A", "EventFormat": "[" * 100_000}]))
    report = StringIO()
    call_command("import", "teamforge", str(path), stdout=StringIO(), stderr=report)
    assert "its EventFormat is not JSON" in report.getvalue()


def test_a_total_that_is_no_number_is_ignored(tmp_path: Path) -> None:
    path = tmp_path / "export.json"
    listed = {"objCode": "TASK", "eventType": "UPDATE", "url": "https://a.example/"}
    path.write_text(json.dumps({"subscriptions": [listed], "meta": {"total_count": "many"}}))
    call_command("import", "workfront", str(path), stdout=StringIO(), stderr=StringIO())
