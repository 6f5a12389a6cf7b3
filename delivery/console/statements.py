"""Running the named statements in `delivery/sql` on Django's connection, rows as named values."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from django.db import connection

_FOLDER = Path(__file__).resolve().parent.parent / "sql"


@cache
def _text(name: str) -> str:
    return (_FOLDER / f"{name}.sql").read_text()


def rows(name: str, parameters: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Run `delivery/sql/{name}.sql`; each row by its column names."""
    with connection.cursor() as cursor:
        cursor.execute(_text(name), parameters)
        columns = [column.name for column in cursor.description or ()]
        return [dict(zip(columns, row, strict=True)) for row in cursor.fetchall()]


def row(name: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Run a statement that answers exactly one row."""
    (only,) = rows(name, parameters)
    return only
