"""Names of subscriptions: loaded once, for millions of rows with only a subscription's id.

PostgreSQL would join the names to each row, convert them to text and send them: it took half of an
export's time.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyarrow import compute

from delivery.history.schemas import CALLED, Table, arrow_rows


@dataclass(frozen=True, slots=True)
class Names:
    """The CALLED columns of every subscription, in a snapshot."""

    rows: pa.RecordBatch

    @classmethod
    def of_rows(cls, rows: Sequence[tuple[Any, ...]]) -> "Names":
        """Build the names from the rows of the statement `subscription_names`."""
        return cls(arrow_rows(CALLED, rows))

    def completed(self, table: Table, bare: pa.RecordBatch) -> pa.RecordBatch:
        """Add the table's named columns to rows with only the `bare` columns."""
        called = self._called(table, bare)
        columns = [
            called[column.name] if column.name in called else bare.column(column.name)
            for column in table.columns
        ]
        return pa.RecordBatch.from_arrays(columns, schema=table.arrow)

    def agree(self, table: Table, rows: pa.RecordBatch) -> bool:
        """Return whether rows of the table have these names for their subscriptions."""
        return all(
            compute.all(
                compute.equal(rows.column(name), expected).fill_null(False), min_count=0
            ).as_py()
            for name, expected in self._called(table, rows).items()
        )

    def _called(self, table: Table, rows: pa.RecordBatch) -> dict[str, pa.Array]:
        """Return the table's named columns for each row; null for a missing subscription."""
        names = table.called
        if not names:
            return {}
        places = compute.index_in(
            rows.column("subscription_id"), value_set=self.rows.column("subscription_id")
        )
        return {name: self.rows.column(name).take(places) for name in names}
