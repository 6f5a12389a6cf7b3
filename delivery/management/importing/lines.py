"""The lines of an old broker's file, JSON lines or CSV, one in memory at a time."""

import csv
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from delivery.incoming.bodies import parse_json
from delivery.incoming.problems import Problem

# Columns of CSV whose cells are JSON.
_OBJECTS = frozenset({"headers"})


@dataclass(frozen=True, slots=True)
class Line:
    """A line with fields; `text` is the JSON as it stands in the file, empty for CSV."""

    number: int
    fields: Mapping[str, Any]
    text: str = ""


class ImportLineError(Exception):
    """A line that cannot be imported; the message has the reason and the remedy."""

    def __init__(self, number: int, detail: str) -> None:
        super().__init__(f"line {number}: {detail}")
        self.number = number


def read_lines(
    path: Path, *, known: frozenset[str], max_bytes: int
) -> Iterator[Line | ImportLineError]:
    """Yield each line with content, or an error. Raise OSError.

    A file whose name ends in `.csv` is CSV with a header row, any other has a JSON object a line.
    `known` are the names of all fields. After an error in the form of a CSV file nothing follows,
    for the rest may be a single cell.
    """
    if path.suffix.lower() == ".csv":
        with path.open(encoding="utf-8-sig", newline="") as file:
            yield from _csv_lines(file, known=known, max_bytes=max_bytes)
    else:
        with path.open("rb") as file:
            yield from _json_lines(file, known=known, max_bytes=max_bytes)


def _json_lines(
    file: IO[bytes], *, known: frozenset[str], max_bytes: int
) -> Iterator[Line | ImportLineError]:
    number = 0
    while raw := file.readline(max_bytes + 1):
        number += 1
        is_too_long = len(raw) > max_bytes
        while raw and not raw.endswith(b"\n") and len(raw) > max_bytes:
            raw = file.readline(max_bytes + 1)
        if is_too_long:
            yield ImportLineError(
                number, f"it is longer than {max_bytes:,} bytes; leave this message out."
            )
        elif text := raw.removeprefix(b"\xef\xbb\xbf").strip():
            yield _json_line(number, text, known=known)


def _json_line(number: int, raw: bytes, *, known: frozenset[str]) -> Line | ImportLineError:
    try:
        fields = parse_json(raw)
    except Problem as problem:
        # The parser counts the lines of the text, which is one line.
        reason = str(problem.detail).replace("The body is not valid JSON", "this is not JSON")
        return ImportLineError(
            number, f"{reason.replace('line 1, ', '')} Write one JSON object a line."
        )
    if not isinstance(fields, dict):
        return ImportLineError(
            number, 'write a JSON object, such as {"key": "17", "event": "Orders.Created", …}.'
        )
    if unknown := set(fields) - known:
        return ImportLineError(number, _unknown(unknown, known))
    return Line(
        number, {name: value for name, value in fields.items() if value is not None}, raw.decode()
    )


def _csv_lines(
    file: IO[str], *, known: frozenset[str], max_bytes: int
) -> Iterator[Line | ImportLineError]:
    csv.field_size_limit(max_bytes)
    rows = csv.DictReader(file, strict=True)
    try:
        if unknown := set(rows.fieldnames or ()) - known:
            yield ImportLineError(1, _unknown(unknown, known))
            return
        before = rows.line_num
        for row in rows:
            # `line_num` is the last line of a row with line breaks in cells.
            yield _csv_line(before + 1, row)
            before = rows.line_num
    except csv.Error as error:
        yield ImportLineError(
            rows.line_num, f"this is not CSV: {error}. Quote cells with commas or line breaks."
        )
    except UnicodeDecodeError as error:
        yield ImportLineError(
            rows.line_num + 1, f"byte {error.start} is not UTF-8; convert the file to UTF-8."
        )


def _csv_line(number: int, row: dict[str | Any, Any]) -> Line | ImportLineError:
    if None in row:
        return ImportLineError(
            number, "it has more cells than the header row; quote cells that have commas."
        )
    fields = {name: value for name, value in row.items() if value}
    try:
        return Line(
            number, fields | {name: json.loads(fields[name]) for name in _OBJECTS & set(fields)}
        )
    except ValueError:
        return ImportLineError(number, 'headers: write a JSON object, such as {"x-id": "7"}.')


def _unknown(names: set[str], known: frozenset[str]) -> str:
    return (
        f"there is no field {min(names)!r}; known are {', '.join(sorted(known))}. "
        "Rename it or leave it out."
    )
