"""The rows of an export are divided among its workers, however many there are."""

from itertools import pairwise

import pytest
from django.db import connection
from psycopg.conninfo import make_conninfo

from delivery.database.connections import connection_parameters
from delivery.history.postgres.division import divided
from delivery.history.postgres.unarchived_rows import EVER, NEVER
from delivery.history.postgres.window import ExportWindow, open_snapshot
from delivery.models import JournalEntry
from tests.support import factories

pytestmark = pytest.mark.django_db(transaction=True)

ENTRIES = 200_000


def test_many_rows_are_divided_into_parts_of_about_equal_size() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO delivery_journalentry (at, kind, text, actor) "
            "SELECT now(), 'CANCELLED', '', '' FROM generate_series(1, %s)",
            [ENTRIES],
        )
    with open_snapshot(make_conninfo(**connection_parameters())) as seen:
        pieces, counted = divided(seen, ExportWindow(EVER, NEVER))
    assert counted == {"messages": 0, "deliveries": 0, "journal": ENTRIES}
    assert all(earlier.last == later.first for earlier, later in pairwise(pieces))
    sizes = [
        JournalEntry.objects.filter(id__gte=piece.first, id__lt=piece.last).count()
        for piece in pieces
    ]
    assert sum(sizes) == ENTRIES
    assert [round(size / 10_000) for size in sizes] == pytest.approx([5, 5, 5, 5], abs=1)


def test_a_few_rows_are_one_piece() -> None:
    first, last = factories.message(), factories.message()
    with open_snapshot(make_conninfo(**connection_parameters())) as seen:
        (piece,), counted = divided(seen, ExportWindow(EVER, NEVER))
    assert counted == {"messages": 2, "deliveries": 0, "journal": 0}
    assert (piece.table, piece.first, piece.last) == ("messages", first.pk, last.pk + 1)
