"""What a sender commits: entries; `delivery.senders.group_statements` writes them."""

from collections.abc import Mapping
from dataclasses import dataclass

from delivery.outcome import Outcome
from delivery.senders.parcel import Endpoint, Parcel
from delivery.states import LaneState
from delivery.verdict import Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Settlement:
    """The outcome of one attempt; `number` is the attempt's, counted from 1.

    `circuit` is the subscription whose URL's health it tells, if its policy keeps that, after so many successes there
    that are not written yet.
    """

    lane_id: int
    delivery_id: int
    number: int
    verdict: Verdict
    outcome: Outcome
    was_skipped: bool = False
    circuit: int | None = None
    successes_before: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """The deliveries that a lane is about to send, in that order, with the attempts each had; concurrent ones all at once."""

    lane_id: int
    ids: tuple[int, ...]
    attempts: tuple[int, ...]
    is_concurrent: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneChange:
    """What a lane is at from now on; it also ends the lane's run unless told otherwise.

    The next try is in `wait_seconds`, by the database's clock. `stays`: only if it is in that state already,
    for a person may have changed it.
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
    """An endpoint is DOWN from now on, because of that delivery; without one it is not, as far as its lane is concerned.

    Only of lanes without order. Of an ordered lane its own change says it: the endpoint of the delivery that stops it is DOWN.
    """

    lane_id: int
    subscription_id: int
    reason: str = ""
    delivery_id: int | None = None
    failures: int = 0
    wait_seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Redundant:
    """A delivery of a QUEUE group was DELIVERED: what is PENDING of the group is sent to nobody."""

    lane_id: int
    message_id: int
    queue_group: int
    delivery_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FreshBudget:
    """A suspended lane resumes: what its first delivery was tried so far counts against no limit any more."""

    lane_id: int
    delivery_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptOutputMade:
    """What a version of a subscription's script has made of a delivery that was never attempted."""

    lane_id: int
    delivery_id: int
    script_version: int
    body: bytes | None
    content_type: str
    headers: Mapping[str, str]
    path: str


Change = LaneChange | EndpointChange
Entry = Settlement | Run | Change | Redundant | FreshBudget | ScriptOutputMade


def settle(
    parcel: Parcel, endpoint: Endpoint, *, lane_id: int, verdict: Verdict, outcome: Outcome
) -> Settlement:
    """The outcome of the attempt that follows those the parcel was read with.

    One that went elsewhere than to the endpoint's URL tells nothing of that URL.
    """
    return Settlement(
        lane_id=lane_id,
        delivery_id=parcel.delivery_id,
        number=parcel.attempts + 1,
        verdict=verdict,
        outcome=outcome,
        circuit=parcel.subscription_id if endpoint.rules.breaks_circuit and not parcel.url else None,
    )
