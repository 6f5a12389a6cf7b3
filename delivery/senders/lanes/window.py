"""How a lane is served, as a value: the answers to five questions, and limits.

- Which key does a delivery wait by after a failed attempt? `waits_by`
- Is a run recorded ahead, or each attempt by itself? `records_ahead`
- May a failed delivery stay first, or are all independent? `may_stay_first`
- Are requests made ahead? `prepares_requests`
- How many attempts may be in flight, in the lane and at a key? `max_in_flight`, `..._per_key`

The code asks for the field that it means, never for the kind of the lane.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Final

from delivery.models import LaneKind
from delivery.outcome import Outcome
from delivery.senders.parcel import Group, Key, Parcel
from delivery.verdict import Rules, Tries, Verdict, judge, judge_independent
from subscriptions.models import Processing

# The key of a lane that waits as a whole.
WHOLE_LANE: Final = "the lane"
_WHOLE_LANE = frozenset[Key]({WHOLE_LANE})

# The limit of a lane's attempts in flight, to however many endpoints: each has a socket, and is in
# the run.
MAX_IN_FLIGHT = 1_000
# A hanging endpoint occupies at most this many attempts.
MAX_IN_FLIGHT_PER_ENDPOINT = 16
# A lane by priority holds few deliveries in memory, because an urgent message is not sent before
# them. The statement needs four: a quarter of its rows is for the oldest deliveries.
LEAST_BY_PRIORITY = 16
READ_PER_ATTEMPT = 4


class WaitsBy(Enum):
    """The unit of a lane that waits after a failed attempt, while the others are sent."""

    LANE = "lane"
    ENDPOINT = "endpoint"


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """The limits and rules by which a lane is served.

    `statement` reads the deliveries, in the order in which they are sent. `records_ahead`: all that
    a read finds is recorded as a run before the first is sent; one attempt follows the other, each
    after the outcome of the last is committed. `max_in_flight_per_key` None: each key has an even
    share. `blocks_keys`: a failure blocks its key for a while; `reports_blocked`: the lane is
    BLOCKED then. `uses_retry_lane`: a policy may move deliveries to the retry lane. A read has at
    most `capacity` deliveries, and begins when at most `refill_level` are left (None: by the
    sender's memory). Each key may fill its share of the memory, which is divided among at least
    `least_keys`.
    """

    statement: str
    waits_by: WaitsBy
    records_ahead: bool
    may_stay_first: bool
    prepares_requests: bool
    max_in_flight: int
    max_in_flight_per_key: int | None
    least_keys: int
    blocks_keys: bool = True
    reports_blocked: bool = False
    uses_retry_lane: bool = False
    capacity: int | None = None
    refill_level: int | None = None

    def __post_init__(self) -> None:
        if self.records_ahead and (self.waits_by is not WaitsBy.LANE or self.max_in_flight > 1):
            raise ValueError(
                "deliveries of a run recorded ahead are sent in turn, and wait as a whole"
            )
        stops_lane = self.waits_by is WaitsBy.LANE and self.max_in_flight_per_key == 1
        if self.may_stay_first and not stops_lane:
            raise ValueError("a delivery that stays first is alone in flight, and stops its lane")

    def key_of(self, parcel: Parcel) -> Key:
        """Return the key by which the parcel waits after a failed attempt."""
        return WHOLE_LANE if self.waits_by is WaitsBy.LANE else parcel.key

    def keys_of(self, group: Group) -> frozenset[Key]:
        """Return the keys of the group, which can be sent while any of them has room."""
        return _WHOLE_LANE if self.waits_by is WaitsBy.LANE else group.keys

    def judge(self, outcome: Outcome, rules: Rules, tries: Tries) -> Verdict:
        """Return the policy's verdict on an outcome in such a lane."""
        if self.may_stay_first:
            return judge(outcome, rules, tries)
        return judge_independent(outcome, rules, tries, moves=self.uses_retry_lane)

    def rows(self, of_a_lane: int) -> int:
        """Return how many deliveries are read at a time, if a lane may hold so many."""
        return of_a_lane // 4 if self.capacity is None else min(of_a_lane, self.capacity)

    def level(self, rows: int) -> int:
        """Return at how many remaining deliveries the next are read."""
        return rows // 2 if self.refill_level is None else min(rows // 2, self.refill_level)


# The windows of subscribers' lanes; `window_of` sets the limits that a subscriber has.
SERIAL = Window(
    statement="read_runs",
    waits_by=WaitsBy.LANE,
    records_ahead=True,
    may_stay_first=True,
    prepares_requests=True,
    max_in_flight=1,
    max_in_flight_per_key=1,
    least_keys=1,
    reports_blocked=True,
    uses_retry_lane=True,
)
CONCURRENT = Window(
    statement="read_due",
    waits_by=WaitsBy.ENDPOINT,
    records_ahead=False,
    may_stay_first=False,
    prepares_requests=False,
    max_in_flight=1,
    max_in_flight_per_key=None,
    least_keys=1,
    reports_blocked=True,
    uses_retry_lane=True,
)
CONCURRENT_BY_PRIORITY = replace(CONCURRENT, statement="read_by_priority")
# The windows of the lanes for queue messages, retries and callbacks.
QUEUE = Window(
    statement="read_groups",
    waits_by=WaitsBy.ENDPOINT,
    records_ahead=False,
    may_stay_first=False,
    prepares_requests=False,
    max_in_flight=MAX_IN_FLIGHT,
    max_in_flight_per_key=MAX_IN_FLIGHT_PER_ENDPOINT,
    least_keys=4,
)
# Fresh messages take precedence: alongside them the retry lane gives an endpoint one message at a
# time. Each delivery has its own time there, so an endpoint gets no further protection.
RETRY = replace(QUEUE, statement="read_due", max_in_flight_per_key=1, blocks_keys=False)
CALLBACK = replace(QUEUE, statement="read_due")

_BY_KIND = {LaneKind.QUEUE: QUEUE, LaneKind.RETRY: RETRY, LaneKind.CALLBACK: CALLBACK}


def window_of(kind: str, row: Mapping[str, Any]) -> Window:
    """Return the window of a lane of this kind, from the columns of the subscriber.

    A failed delivery of a CONCURRENT subscriber goes to the retry lane if its policy says so, as
    that of a SERIAL subscriber does. The schedule is kept there even if the subscriber becomes
    SERIAL, whose lane is sent in order, whether deliveries are due or not. So an endpoint may get
    one retry at a time in addition to `max_in_flight`.
    """
    if kind != LaneKind.TOPIC:
        return _BY_KIND[LaneKind(kind)]
    capacity, refill_level = row["max_queued_to_send"], row["refill_level"]
    if row["processing"] != Processing.CONCURRENT:
        return replace(SERIAL, capacity=capacity, refill_level=refill_level)
    max_in_flight = row["max_in_flight"] or 1
    window = CONCURRENT
    if row["by_priority"]:
        window = CONCURRENT_BY_PRIORITY
        few = max(READ_PER_ATTEMPT * max_in_flight, LEAST_BY_PRIORITY)
        capacity = few if capacity is None else max(min(few, capacity), 4)
    return replace(
        window, max_in_flight=max_in_flight, capacity=capacity, refill_level=refill_level
    )
