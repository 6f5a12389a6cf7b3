"""The division of an export's rows into pieces, for the workers to read."""

from collections import Counter
from itertools import pairwise

from delivery.database.statements import statement
from delivery.history.postgres.source import Piece
from delivery.history.postgres.window import ExportWindow, Snapshot
from delivery.history.schemas import DELIVERIES, JOURNAL, MESSAGES

# The rows written by a worker at a time; fewer are not worth another worker, nor more files of a
# day.
_ROWS_A_PIECE = 50_000
_MOST_PIECES = 8
# The part of the rows by which they are divided: a thousand of the fewest.
_SHARE = 0.02
# The counted relations, with their id and time columns: the largest first, so workers end at about
# the same time. Attempts are written with their deliveries.
_RELATIONS = (
    (DELIVERIES, "delivery_settlement", "delivery_id", "settled_at"),
    (MESSAGES, "delivery_message", "id", "published_at"),
    (JOURNAL, "delivery_journalentry", "id", "at"),
)


def divided(seen: Snapshot, window: ExportWindow) -> tuple[list[Piece], Counter[str]]:
    """Return the workers' pieces, of about equal size, and the number of rows by table.

    Attempts are not counted. Together the pieces have all counted ids; another snapshot may have
    more.
    """
    pieces, counted = [], Counter[str]()
    for table, relation, id, at in _RELATIONS:
        text = statement("archive_bounds").format(relation=relation, id=id, at=at)
        parameters = {
            "since": window.since,
            "until": window.until,
            "rows": _ROWS_A_PIECE,
            "most": _MOST_PIECES,
            "share": _SHARE,
        }
        row = seen.connection.execute(text.encode(), parameters).fetchone()
        assert row is not None
        counted[table.name], bounds = row
        pieces += [
            Piece(table=table.name, since=window.since, until=window.until, first=first, last=last)
            for first, last in pairwise(bounds)
        ]
    return pieces, counted
