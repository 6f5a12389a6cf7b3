"""Tables without indexes and foreign keys while millions of rows are written.

They are checked and indexed once, at the end.
"""

from django.db import connection

TABLES = ("delivery_message", "delivery_waiting", "delivery_settled", "delivery_journalentry")

_INDEXES = """
    SELECT
        format('DROP INDEX %%I', relation.relname),
        -- Of a partitioned table it says ON ONLY: made so, it would be an index without those of
        -- the partitions.
        regexp_replace(pg_get_indexdef(index.indexrelid), ' ON ONLY ', ' ON ')
    FROM pg_index index JOIN pg_class relation ON relation.oid = index.indexrelid
    WHERE
        index.indrelid = ANY (%s::regclass[]) AND NOT index.indisprimary
        AND NOT relation.relispartition
"""
_FOREIGN_KEYS = """
    SELECT
        format('ALTER TABLE %%s DROP CONSTRAINT %%I', conrelid::regclass, conname),
        format(
            'ALTER TABLE %%s ADD CONSTRAINT %%I %%s',
            conrelid::regclass, conname, pg_get_constraintdef(oid)
        )
    FROM pg_constraint
    WHERE conrelid = ANY (%s::regclass[]) AND contype = 'f'
"""


def strip() -> list[str]:
    """Drop the indexes and foreign keys, and return the statements to recreate them.

    Call it in the recreating transaction: if it is interrupted, the tables stay as they were.
    """
    dropped = [row for catalog in (_INDEXES, _FOREIGN_KEYS) for row in _rows(catalog)]
    with connection.cursor() as cursor:
        for drop, _ in dropped:
            cursor.execute(drop)
    return [again for _, again in dropped]


def _rows(catalog: str) -> list[tuple[str, str]]:
    with connection.cursor() as cursor:
        cursor.execute(catalog, [list(TABLES)])
        rows: list[tuple[str, str]] = cursor.fetchall()
    return rows
