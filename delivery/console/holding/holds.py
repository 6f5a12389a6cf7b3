"""The subscribers and subscriptions on hold: since when, by whom, with what backlog."""

from dataclasses import dataclass
from datetime import datetime

from delivery.database.queries import named_rows
from delivery.standing import waiting_counts
from delivery.standing.bounded_counts import Bounded
from subscriptions.models import Installation, Sending

SHOWN = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldRow:
    """A HELD or INACTIVE subscriber, or a HELD subscription; `kind` names which.

    `since` and `actor` come from the journal.
    """

    kind: str
    id: int
    name: str
    status: str
    until: datetime | None
    catch_up_rate: float | None
    since: datetime | None
    actor: str | None
    waiting: Bounded | None


def sending_held() -> Installation | None:
    """Return the installation if all sending is HELD."""
    return Installation.objects.filter(pk=1, sending=Sending.HELD).first()


def read_held(*, limit: int) -> list[HeldRow]:
    """Return held subscribers and subscriptions, subscribers first."""
    rows = named_rows("held", {"rows": limit})
    lanes = waiting_counts.waiting_of_lanes(
        [row["lane_id"] for row in rows if row["kind"] == "subscriber"]
    )
    own = waiting_counts.waiting_of_subscriptions(
        [row["id"] for row in rows if row["kind"] == "subscription"]
    )
    return [
        HeldRow(
            **{name: row[name] for name in HeldRow.__slots__ if name in row},
            waiting=(
                lanes.get(row["lane_id"]) if row["kind"] == "subscriber" else own.get(row["id"])
            ),
        )
        for row in rows
    ]
