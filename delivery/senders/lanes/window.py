"""How a lane is served, as a value: attempts at once, order, and the pause after a failure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

from delivery.models import LaneKind
from delivery.outcome import Outcome
from delivery.senders.parcel import Group, Key
from delivery.verdict import Rules, Tries, Verdict, judge, judge_independent
from subscriptions.models import Processing

# The key of an ordered lane.
WHOLE_LANE: Final = "the lane"
# The limit of a lane's attempts at once, to however many endpoints: each has a socket, and is in
# the run.
MOST_UNDER_WAY = 1_000
# The limit of a lane's attempts at once to one endpoint: one that hangs takes no more than its own
# places.
PLACES = 16
# A lane by priority holds few deliveries in memory, because an urgent one is not sent before them.
# The statement needs four: one of them is the oldest.
LEAST_BY_PRIORITY = 16
READ_FOR_EACH_PLACE = 4

_WHOLE_LANE = frozenset[Key]({WHOLE_LANE})


class SendingOrder(Enum):
    """Which delivery is next: the oldest, or the one that is due first."""

    ID = "id"
    DUE = "due"


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """The limits and rules by which a lane is served.

    At most `size` attempts are under way; of one key `per_key`, or an even share of the window if
    that is None. `blocks_keys`: a key that fails is blocked for a while. `reports_blocked`: the
    lane is BLOCKED then. `uses_retry_lane`: deliveries go to the retry lane when the policy says
    so. At most `capacity` deliveries are read at a time, when no more than `refill_level` are left,
    if those are set. Of the deliveries in memory an endpoint has at most its share, computed for at
    least `least_keys` endpoints.
    """

    statement: str
    order: SendingOrder = SendingOrder.DUE
    size: int = MOST_UNDER_WAY
    per_key: int | None = PLACES
    least_keys: int = 4
    blocks_keys: bool = True
    reports_blocked: bool = False
    uses_retry_lane: bool = False
    capacity: int | None = None
    refill_level: int | None = None

    # Whether the lane itself is the key: each outcome is committed before the next delivery is
    # sent.
    is_ordered: bool = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "is_ordered", self.order is SendingOrder.ID)

    def keys_of(self, group: Group) -> frozenset[Key]:
        """Return the keys of which one has to be free for the group to be sent."""
        return _WHOLE_LANE if self.is_ordered else group.keys

    def judge(self, outcome: Outcome, rules: Rules, tries: Tries) -> Verdict:
        """Return the policy's verdict on an outcome in such a lane."""
        if self.is_ordered:
            return judge(outcome, rules, tries)
        return judge_independent(outcome, rules, tries, moves=self.uses_retry_lane)

    def rows(self, of_a_lane: int) -> int:
        """Return how many deliveries are read at a time, if a lane may hold so many."""
        return of_a_lane // 4 if self.capacity is None else min(of_a_lane, self.capacity)

    def level(self, rows: int) -> int:
        """Return at how many remaining deliveries the next are read."""
        return rows // 2 if self.refill_level is None else min(rows // 2, self.refill_level)


# Fresh messages take precedence: alongside them the retry lane gives an endpoint one message at a
# time. Each delivery has its own time there, so an endpoint gets no further protection.
_WINDOWS = {
    LaneKind.QUEUE: Window(statement="read_groups"),
    LaneKind.RETRY: Window(statement="read_due", per_key=1, blocks_keys=False),
    LaneKind.CALLBACK: Window(statement="read_due"),
}


def window_of(kind: str, row: Mapping[str, Any]) -> Window:
    """Return the window of a lane of that kind, from the columns of its subscriber.

    A failed delivery of a CONCURRENT subscriber goes to the retry lane if its policy says so, as
    one of a SERIAL subscriber does. Its schedule is kept there even if the subscriber becomes
    SERIAL, whose sender takes the deliveries of its own lane in order, whether they are due or not.
    So an endpoint may get one retry at a time in addition to its `max_in_flight`.
    """
    if kind != LaneKind.TOPIC:
        return _WINDOWS[LaneKind(kind)]
    is_concurrent = row["processing"] == Processing.CONCURRENT
    is_by_priority = is_concurrent and row["by_priority"]
    statement = (
        "read_by_priority" if is_by_priority else "read_due" if is_concurrent else "read_runs"
    )
    return Window(
        statement=statement,
        order=SendingOrder.DUE if is_concurrent else SendingOrder.ID,
        size=(row["max_in_flight"] or 1) if is_concurrent else 1,
        per_key=None if is_concurrent else 1,
        least_keys=1,
        reports_blocked=True,
        uses_retry_lane=True,
        capacity=_capacity_by_priority(row) if is_by_priority else row["max_queued_to_send"],
        refill_level=row["refill_level"],
    )


def _capacity_by_priority(row: Mapping[str, Any]) -> int:
    read: int = max(READ_FOR_EACH_PLACE * (row["max_in_flight"] or 1), LEAST_BY_PRIORITY)
    return (
        read if row["max_queued_to_send"] is None else max(min(read, row["max_queued_to_send"]), 4)
    )
