"""A restored ledger is compared with the archive's folder."""

from pathlib import Path

from config.backup.archive import archive_warnings

HEADER = "path,table,day,rows,bytes\n"


def test_files_that_differ_are_named(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.csv"
    ledger.write_text(
        f"{HEADER}messages/day=2026-01-01/1-0.parquet,messages,2026-01-01,5,900\n"
        "messages/day=2026-01-02/2-0.parquet,messages,2026-01-02,5,900\n"
    )
    archive = tmp_path / "archive"
    for name in ("day=2026-01-01/1-0.parquet", "day=2026-01-03/3-0.parquet"):
        path = archive / "messages" / name
        path.parent.mkdir(parents=True)
        path.touch()
    missing, unknown = archive_warnings(ledger, str(archive))
    assert "lacks 1 files of the back-up, such as messages/day=2026-01-02/2-0.parquet" in missing
    assert (
        "has 1 files that were written after the back-up, such as "
        "messages/day=2026-01-03/3-0.parquet" in unknown
    )


def test_an_archive_as_it_was_needs_no_warning(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.csv"
    ledger.write_text(HEADER)
    assert list(archive_warnings(ledger, str(tmp_path / "nowhere"))) == []
    assert list(archive_warnings(ledger, "s3a://bucket/inturn")) == []
