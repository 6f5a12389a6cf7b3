"""The files of other systems' configurations: their text, JSON and CSV, or a sentence why not."""

import csv
import io
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from delivery.incoming.bodies import MAX_DOCUMENT_BYTES, parse_json
from delivery.incoming.problems import Problem
from delivery.management.importing.import_result import SourceError

LONGEST_CELL = 1024 * 1024
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")


def read_source(path: Path) -> str:
    """Return the text of a file in UTF-8; raise SourceError if there is none."""
    try:
        # A pipe has no size, and is read up to the limit.
        with path.open("rb") as file:
            content = file.read(MAX_DOCUMENT_BYTES + 1)
            size = max(os.fstat(file.fileno()).st_size, len(content))
    except OSError as error:
        raise SourceError(f"{path} cannot be read: {error.strerror}.") from None
    if len(content) > MAX_DOCUMENT_BYTES:
        raise SourceError(
            f"{path} has {size:,} bytes, more than the {MAX_DOCUMENT_BYTES:,} that an import "
            "reads. Divide it into several files."
        )
    return _decoded(content, path)


def parse_source(text: str) -> Any:
    """Parse JSON, as bodies of requests are parsed; raise SourceError with line and column."""
    try:
        return parse_json(text.removeprefix("\ufeff").encode())
    except UnicodeEncodeError:
        raise SourceError("The source is not JSON: it holds half a surrogate pair.") from None
    except Problem as problem:
        detail = str(problem.detail).replace("The body is not valid JSON", "The source is not JSON")
        raise SourceError(detail.replace("The body", "The source")) from None


def csv_rows(text: str) -> list[Mapping[Any, Any]]:
    """Return the rows by the names of the first line; raise SourceError with the line."""
    # A process-wide limit; the limit of messages' files is another.
    csv.field_size_limit(LONGEST_CELL)
    rows = csv.DictReader(io.StringIO(text.removeprefix("\ufeff"), newline=""))
    try:
        return list(rows)
    except csv.Error as error:
        raise SourceError(f"The source is not CSV: {error} (line {rows.line_num + 1}).") from None


def _decoded(content: bytes, path: Path) -> str:
    if content.startswith(_UTF_16):
        raise SourceError(f"{path} is UTF-16. Convert it to UTF-8.")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line, column = _place(content[: error.start])
        raise SourceError(
            f"{path} is not UTF-8 (line {line}, byte {column} of it). Convert it to UTF-8."
        ) from None
    if "\0" in text:
        line, column = _place(content[: content.index(0)])
        raise SourceError(
            f"{path} has a NUL byte (line {line}, byte {column} of it): it is no text, or in "
            "another encoding. Convert it to UTF-8."
        )
    return text


def _place(before: bytes) -> tuple[int, int]:
    return before.count(b"\n") + 1, len(before) - (before.rfind(b"\n") + 1) + 1
