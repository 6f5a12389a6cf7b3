"""Comparison of a restored ledger with the archive in the home."""

import csv
from collections.abc import Iterator
from pathlib import Path

# The archive's files of the snapshot that count: see `archive_files.sql`.
LEDGER_ROWS = """
    COPY (
        SELECT file.path, file."table", file.day, file.rows, file.bytes
        FROM delivery_archivefile file
        JOIN delivery_archivechunk chunk ON chunk.id = file.chunk_id
        LEFT JOIN delivery_archivechunk replacing ON replacing.id = file.replaced_by_id
        WHERE chunk.state = 'DONE' AND replacing.state IS DISTINCT FROM 'DONE'
        ORDER BY file.id
    ) TO STDOUT (FORMAT csv, HEADER)
"""


def archive_warnings(ledger: Path, archive: str) -> Iterator[str]:
    """Yield warnings for files missing in the archive, and for files unknown to the ledger.

    Only a folder is compared; other storage has other tools.
    """
    if "://" in archive:
        return
    with ledger.open(newline="") as file:
        known = {row["path"] for row in csv.DictReader(file)}
    folder = Path(archive)
    # Files of an unfinished export are in hidden folders.
    found = {str(path.relative_to(folder)) for path in folder.glob("*/day=*/*.parquet")}
    if missing := sorted(known - found):
        yield (
            f"warning: the archive {folder} lacks {len(missing)} files of the back-up, such as "
            f"{missing[0]}: copy them there, or set HISTORY_URL to the archive that has them"
        )
    if unknown := sorted(found - known):
        yield (
            f"warning: the archive {folder} has {len(unknown)} files that were written after the "
            f"back-up, such as {unknown[0]}: move them away before the next export, "
            "which archives their rows again"
        )
