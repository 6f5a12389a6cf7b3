"""The subscribers and subscriptions on hold: since when, by whom, with what backlog."""

from dataclasses import dataclass
from datetime import datetime

from delivery.database.queries import named_rows
from delivery.standing.bounded_counts import Bounded
from delivery.standing.reading import standing_of_subscribers, standing_of_subscriptions
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
    waiting: Bounded


def sending_held() -> Installation | None:
    """Return the installation if all sending is HELD."""
    return Installation.objects.filter(pk=1, sending=Sending.HELD).first()


def read_held(*, limit: int) -> list[HeldRow]:
    """Return held subscribers and subscriptions, subscribers first."""
    rows = named_rows("held", {"rows": limit})
    owners = standing_of_subscribers([row["id"] for row in rows if row["kind"] == "subscriber"])
    own = standing_of_subscriptions([row["id"] for row in rows if row["kind"] == "subscription"])
    return [
        HeldRow(
            **{name: row[name] for name in HeldRow.__slots__ if name in row},
            waiting=(owners if row["kind"] == "subscriber" else own)[row["id"]].waiting,
        )
        for row in rows
    ]
