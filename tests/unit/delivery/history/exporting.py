"""Preparations of tests of the export, and the archive's content afterwards."""

from datetime import timedelta
from pathlib import Path
from typing import Any

from django.utils import timezone

from delivery.history.archive.ledger import files
from delivery.history.job import StepJob
from delivery.history.schemas import TABLES, Table
from delivery.models import Delivery
from delivery.states import Status
from tests.support import factories

# Without the wait for open transactions.
AT_ONCE = timedelta(0)


def rows(job: StepJob, table: Table) -> list[dict[str, Any]]:
    """Return the archive's rows, by key."""
    frame = job.read_files(table, files(job.database, table.name))
    return [row.asDict() for row in frame.orderBy(*table.key).collect()]


def settled(status: Status = Status.DELIVERED, *, days: float = 1, **fields: Any) -> Delivery:
    """Create a delivery of a message published so many days ago."""
    subscription = factories.subscription()
    if "message" not in fields:
        fields["message"] = factories.message(
            event_type=subscription.event_type, published_at=timezone.now() - timedelta(days=days)
        )
    return factories.delivery(status, subscription=subscription, **fields)


def visible(folder: Path) -> list[str]:
    """Return the files that any reader of Parquet finds in the tables."""
    return sorted(
        str(file.relative_to(folder))
        for table in TABLES
        for file in (folder / table.name).rglob("*.parquet")
    )
