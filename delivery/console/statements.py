"""Running the named statements of `delivery/sql` on Django's connection, rows as named values."""

from collections.abc import Mapping
from typing import Any

from django.db import connection

from delivery.sql import statement


def rows(name: str, parameters: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Run `delivery/sql/{name}.sql`; each row by its column names."""
    with connection.cursor() as cursor:
        cursor.execute(statement(name), parameters)
        columns = [column.name for column in cursor.description or ()]
        return [dict(zip(columns, row, strict=True)) for row in cursor.fetchall()]


def row(name: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Run a statement that answers exactly one row."""
    (only,) = rows(name, parameters)
    return only
