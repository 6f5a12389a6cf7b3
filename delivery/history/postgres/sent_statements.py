"""The statements by which an export's workers read: rows in their order, each with a checksum."""

from collections.abc import Sequence

from delivery.history.archive.fingerprint import CHECKSUM, fingerprint_sql, whole_times_sql
from delivery.history.postgres.message_columns import MESSAGE_PART
from delivery.history.schemas import ATTEMPTS, DELIVERIES, Column, Table

# The texts of most deliveries.
USUAL = {"status": "DELIVERED", "redelivery": "", "reason": "", "output_sha256": None}


def sent_statement(table: Table, select: str, extra: Sequence[Column] = (), *more: str) -> str:
    """Return the statement for the rows' own columns in their order, with checksums.

    The rows also have `extra` columns, and `more` expressions for the checksum's place. A
    delivery's checksum lacks the message's part (see `message_columns`). After attempts, which the
    export has not counted, a row without a key has their number in place of the checksum.
    """
    order = f"ORDER BY {', '.join(table.key)}"
    columns = (*table.selected, *extra)
    names = [column.name for column in columns]
    whole = ", ".join(["found.*", *whole_times_sql(columns)])
    checksums = ", ".join([*names, f"{_checksum_sql(table)} AS {CHECKSUM}", *more])
    # The inner ORDER BY sorts rows before the checksum widens them, by an index if possible; then
    # the outer one costs nothing more. All parts of the statement are ours.
    inner = f"SELECT {whole} FROM ({select}) AS found {order}"  # noqa: S608
    rows = f"SELECT {checksums} FROM ({inner}) AS found {order}"  # noqa: S608
    if table is not ATTEMPTS:
        return rows
    # PostgreSQL keeps the rows for the count: to execute the statement again would take longer.
    empty = ", ".join(f"NULL AS {column.name}" for column in table.selected)
    return (
        f"WITH sent AS MATERIALIZED ({rows}) SELECT * FROM sent "  # noqa: S608
        f"UNION ALL SELECT {empty}, count(*) FROM sent"
    )


def _checksum_sql(table: Table) -> str:
    if table is not DELIVERIES:
        return fingerprint_sql(table.bare)
    columns = [column for column in table.selected if column not in MESSAGE_PART]
    return fingerprint_sql(columns, among=table.bare, usual=USUAL)
