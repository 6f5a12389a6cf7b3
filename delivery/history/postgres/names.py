"""What subscriptions are called: known once, for millions of rows that say which subscription they are of.

PostgreSQL would join it to each row, turn it into text, and send it: that took half of an export's time.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyarrow import compute

from delivery.history.schemas import CALLED, Table, arrow_rows


@dataclass(frozen=True, slots=True)
class Names:
    """CALLED of every subscription, as one snapshot shows it."""

    rows: pa.RecordBatch

    @classmethod
    def of_rows(cls, rows: Sequence[tuple[Any, ...]]) -> "Names":
        """Make it of what the statement `subscription_names` gives."""
        return cls(arrow_rows(CALLED, rows))

    def completed(self, table: Table, bare: pa.RecordBatch) -> pa.RecordBatch:
        """Return rows that have the table's `bare` columns with all of its columns, and no others."""
        called = self._called(table, bare)
        columns = [
            called[column.name] if column.name in called else bare.column(column.name)
            for column in table.columns
        ]
        return pa.RecordBatch.from_arrays(columns, schema=table.arrow)

    def agree(self, table: Table, rows: pa.RecordBatch) -> bool:
        """Whether rows of the table call their subscriptions so."""
        return all(
            compute.all(compute.equal(rows.column(name), expected).fill_null(False), min_count=0).as_py()
            for name, expected in self._called(table, rows).items()
        )

    def _called(self, table: Table, rows: pa.RecordBatch) -> dict[str, pa.Array]:
        """Return the table's columns of this kind for each of the rows; null for a subscription that there is not."""
        names = table.called
        if not names:
            return {}
        places = compute.index_in(
            rows.column("subscription_id"), value_set=self.rows.column("subscription_id")
        )
        return {name: self.rows.column(name).take(places) for name in names}
