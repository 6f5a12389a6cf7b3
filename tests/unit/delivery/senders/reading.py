"""Rows of the senders' reading statements."""

from typing import Any

from django.db import connection


def fetch(text: str, parameters: dict[str, Any] | None = None) -> list[dict[str, Any]]:
    with connection.cursor() as cursor:
        cursor.execute(text, parameters)
        columns = [column.name for column in cursor.description or ()]
        return [dict(zip(columns, row, strict=True)) for row in cursor.fetchall()]
