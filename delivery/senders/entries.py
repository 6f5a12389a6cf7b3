"""The entries that a sender commits; `delivery.senders.commits.commit_statements` writes them."""

from collections.abc import Mapping
from dataclasses import dataclass

from delivery.outcome import Outcome
from delivery.senders.parcel import Endpoint, Parcel
from delivery.states import LaneState
from delivery.verdict import Verdict

# The outputs of a read's scripts are stored by one commit, which other lanes' outcomes share: a
# commit with 300 outputs of 1.5 kB took 24 ms.
MOST_OUTPUTS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Settlement:
    """An outcome with its verdict; `number` is the number of the attempt, from 1.

    `counted_subscription_id`: the outcome changes the health of this subscription's URL, because
    the policy uses the circuit breaker; `successes_before` counts earlier successes there that are
    not written yet.
    """

    lane_id: int
    delivery_id: int
    number: int
    verdict: Verdict
    outcome: Outcome
    was_skipped: bool = False
    counted_subscription_id: int | None = None
    successes_before: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """The deliveries that a lane is about to send, in order, with the attempts of each.

    `is_concurrent`: all of them are in flight at once.
    """

    lane_id: int
    ids: tuple[int, ...]
    attempts: tuple[int, ...]
    is_concurrent: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneChange:
    """The new state of a lane. `ends_run`: the lane's run ends as well.

    The next try is in `wait_seconds`, by the database's clock. `stays`: apply the change only if
    the lane is in this state already, because a person may have changed the state.
    """

    lane_id: int
    state: LaneState
    reason: str = ""
    delivery_id: int | None = None
    failures: int = 0
    wait_seconds: float | None = None
    ends_run: bool = True
    stays: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointChange:
    """An endpoint is DOWN because of a delivery. Without a delivery it was reached: DOWN ends.

    An ordered lane hands in only the end: its LaneChange makes the endpoint of the delivery that
    stops the lane DOWN.
    """

    lane_id: int
    subscription_id: int
    reason: str = ""
    delivery_id: int | None = None
    failures: int = 0
    wait_seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Redundant:
    """A delivery of a QUEUE group was DELIVERED: its PENDING siblings are sent to nobody."""

    lane_id: int
    message_id: int
    queue_group: int
    delivery_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FreshBudget:
    """A suspended lane resumes: earlier attempts of its first delivery count against no limit."""

    lane_id: int
    delivery_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptOutputMade:
    """The output of a version of a script, for a delivery of which no attempt has sent another."""

    lane_id: int
    delivery_id: int
    script_version: int
    body: bytes | None
    content_type: str
    headers: Mapping[str, str]
    path: str


Change = LaneChange | EndpointChange
Entry = Settlement | Run | Change | Redundant | FreshBudget | ScriptOutputMade


def settlement_of(
    parcel: Parcel, endpoint: Endpoint, *, lane_id: int, verdict: Verdict, outcome: Outcome
) -> Settlement:
    """Return the settlement of the attempt that follows those counted in the parcel.

    An attempt that went to another URL than the endpoint's does not count for the endpoint's URL.
    """
    return Settlement(
        lane_id=lane_id,
        delivery_id=parcel.delivery_id,
        number=parcel.attempts + 1,
        verdict=verdict,
        outcome=outcome,
        counted_subscription_id=parcel.subscription_id
        if endpoint.rules.breaks_circuit and not parcel.url
        else None,
    )
