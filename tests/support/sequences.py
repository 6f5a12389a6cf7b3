"""Sequences moved far ahead by a test: a rollback does not move them back."""

from collections.abc import Iterator

import pytest
from django.db import connection


@pytest.fixture
def kept_sequences(db: None) -> Iterator[None]:
    """Give all sequences their values back, for tests of the same database with counted ids."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT format('%I.%I', schemaname, sequencename), coalesce(last_value, start_value),"
            " last_value IS NOT NULL FROM pg_sequences"
        )
        before = cursor.fetchall()
    yield
    with connection.cursor() as cursor:
        cursor.executemany("SELECT setval(%s, %s, %s)", before)
