"""The stopped lanes: subscriber, reason, time, and the effect of each button."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from delivery.console.holding import cost
from delivery.console.lanes.strips import Strip, read_strips
from delivery.database.queries import named_rows
from delivery.models.message import public_id
from delivery.standing.bounded_counts import WAITING_LIMIT, Bounded
from delivery.states import LaneState, Status
from subscriptions.values.counts import counted

# Five lines each: the others are counted.
SHOWN = 12
NAMES_SHOWN = 10
# Only the first have a strip, so a page of many stopped lanes stays small.
STRIPS_SHOWN = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class StoppedLane:
    """A stopped lane and the head: the stopping delivery, if still there.

    For a CONCURRENT subscriber (`is_concurrent`), `down` counts the endpoints down and `down_names`
    names those down longest; other endpoints continue, and the other fields are about the first of
    them. At `next_try_at` a BLOCKED lane is tried and a SUSPENDED lane's probe URL is called;
    without it a SUSPENDED lane waits for a person. `subscriptions` counts the subscriber's ACTIVE
    subscriptions, `others` those but for the head's, and `freed` their waiting deliveries. `cost`
    says how many messages are not kept while the subscription is INACTIVE, `cost_of_all` while the
    subscriber is.
    """

    lane_id: int
    name: str
    subscriber_id: int | None
    is_concurrent: bool
    subscriptions: int
    cost: str
    cost_of_all: str
    state: str
    since: datetime
    reason: str
    failures: int
    next_try_at: datetime | None
    delivery_id: int | None
    status: str | None
    attempts: int | None
    message_id: int | None
    message: str
    event: str | None
    subscription_id: int | None
    subscription: str | None
    endpoint: str | None
    probe_url: str | None
    down: int
    down_names: list[str]
    waiting: Bounded
    freed: Bounded
    others: int
    strip: Strip | None = None

    @property
    def is_suspended(self) -> bool:
        return self.state == LaneState.SUSPENDED

    @property
    def downs(self) -> str:
        """A sentence with the names of the endpoints down.

        Empty unless the subscriber is CONCURRENT and several are down.
        """
        if not self.is_concurrent or self.down < 2:
            return ""
        more = self.down - len(self.down_names)
        return (
            f"{self.down} endpoints are down: "
            f"{', '.join(self.down_names)}{f' and {more} more' if more else ''}."
        )

    @property
    def may_skip(self) -> bool:
        """True if there is a delivery to cancel.

        After a rejection, the suspending delivery is settled.
        """
        return self.status == Status.PENDING

    @property
    def resumes(self) -> str:
        """A sentence on the effect of resuming the suspended lane."""
        if self.may_skip:
            return f"{self.message} is retried, with all its attempts."
        if not self.waiting:
            return "The delivery stays REJECTED; no other delivery waits."
        return f"The rejection stays. Resumes {self.waiting.of('waiting message')}."

    @property
    def unblocks(self) -> str:
        """Say which deliveries resume once the head's subscription is HELD or INACTIVE."""
        if self.is_concurrent:
            others = (
                "other deliveries of this CONCURRENT subscriber continue"
                if self.others
                else "no other delivery waits"
            )
            return f"Its messages are held; {others}."
        if not self.others:
            return f"{self.name} has no other subscription: its messages are held and not sent."
        waiting = f" ({self.freed.of('waiting message')})" if self.freed else ""
        return f"Resumes {counted(self.others, 'other subscription')} of {self.name}{waiting}."


def read_stopped_lanes(*, limit: int, subscriber_id: int | None = None) -> list[StoppedLane]:
    """Return the stopped lanes, or only a subscriber's, longest first."""
    parameters = {
        "limit": WAITING_LIMIT,
        "rows": limit,
        "names": NAMES_SHOWN,
        "subscriber": subscriber_id,
    }
    rows = named_rows("stopped_lanes", parameters)
    subscriptions = {row["subscription_id"] for row in rows if row["subscription_id"] is not None}
    subscribers = {row["subscriber_id"] for row in rows if row["subscriber_id"] is not None}
    strips = {
        strip.lane.pk: strip
        for strip in read_strips([row["lane_id"] for row in rows[:STRIPS_SHOWN]])
    }
    own, all_of = cost.cost_of_subscriptions(subscriptions), cost.cost_of_subscribers(subscribers)
    return [
        _lane(
            row
            | {
                "cost": own.get(row["subscription_id"], ""),
                "cost_of_all": all_of.get(row["subscriber_id"], ""),
                "strip": strips.get(row["lane_id"]),
            }
        )
        for row in rows
    ]


def _lane(row: dict[str, Any]) -> StoppedLane:
    name = row["subscriber"] or f"{row['kind'].lower()}:{row['number']}"
    shared = {field: row[field] for field in StoppedLane.__slots__ if field in row}
    return StoppedLane(
        **shared
        | {
            "name": name,
            "message": public_id(row["message_id"]) if row["message_id"] else "",
            "waiting": Bounded(row["waiting"], WAITING_LIMIT),
            "freed": Bounded(row["freed"], WAITING_LIMIT),
        }
    )
