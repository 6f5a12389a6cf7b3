"""The words for how a thing stands, and their order.

A subscription has the first true of these:

1. INACTIVE: a person made it or the subscriber INACTIVE, or it is SHADOW. Nothing is sent.
2. HELD: a person holds it, the subscriber or all sending; or the backlog is being cancelled.
3. STOPPED: the circuit breaker stops the URL (DISABLED, FROZEN), or the lane is stopped (BLOCKED,
   SUSPENDED): messages wait in order behind a delivery, perhaps of another subscription.
4. DOWN: the last try of the endpoint failed, and the lane goes on. It ends when the
   endpoint accepts or refuses a message, and never because nothing waits.
5. SLOW: the oldest message whose turn it is waits longer than the bound of the incident rule
   *slow lane*, whether or not the rule is on.
6. MOVING: something waits, or is on the way.
7. QUIET: nothing waits.

A person's decision comes first: nothing is tried meanwhile, so earlier failures mean nothing. The
view `delivery_subscriptionstanding` has this order, and nothing else decides.

A subscriber, a mailbox and a queue group stand as the worst of their sendable parts, in the order
STOPPED, DOWN, SLOW, MOVING, QUIET; if there is no such part, HELD before INACTIVE. A queue group is
STOPPED if every endpoint is STOPPED or DOWN, and DOWN if some are.
"""

from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from delivery.standing.bounded_counts import WAITING_LIMIT, Bounded


class State(StrEnum):
    """The states from the first in need of a person to the last."""

    STOPPED = "STOPPED"
    DOWN = "DOWN"
    SLOW = "SLOW"
    HELD = "HELD"
    INACTIVE = "INACTIVE"
    MOVING = "MOVING"
    QUIET = "QUIET"


BY_A_PERSON = frozenset({State.HELD, State.INACTIVE})
IN_TROUBLE = frozenset({State.STOPPED, State.DOWN})
NONE_WAITING = Bounded(0, WAITING_LIMIT)
# The parts of a thing: the sendable parts, the worst first, and then the others.
_OF_PARTS = (
    *(State.STOPPED, State.DOWN, State.SLOW, State.MOVING, State.QUIET),
    *(State.HELD, State.INACTIVE),
)


class Cause(StrEnum):
    """The causes of a state other than SLOW, MOVING and QUIET: a status, or a sender's finding."""

    INACTIVE = "INACTIVE"
    SHADOW = "SHADOW"
    HELD = "HELD"
    CANCELLING = "CANCELLING"
    BLOCKED = "BLOCKED"
    SUSPENDED = "SUSPENDED"
    DISABLED = "DISABLED"
    FROZEN = "FROZEN"
    DOWN = "DOWN"


class Holder(StrEnum):
    """The object whose status holds a subscription."""

    SUBSCRIPTION = "subscription"
    SUBSCRIBER = "subscriber"
    INSTALLATION = "installation"


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """How a thing stands, now.

    `cause` and `reason`, the answer of the endpoint, are those of the part `subscription_id`, which
    is the worst. `since` is the beginning of the state, as far as it is known. At `next_try_at`
    something is tried, or a hold ends; without it a STOPPED or HELD thing waits for a person.
    `delivery_id` stops the lane. `waiting` counts the open deliveries, up to a limit, and
    `oldest_at` is the publication of the oldest; held deliveries count only where nothing may be
    sent. A group counts the messages of its first sendable endpoint, which has all. `parts` counts
    sendable subscriptions, `down` those of them STOPPED or DOWN.
    """

    state: State = State.QUIET
    cause: Cause | None = None
    holder: Holder | None = None
    reason: str = ""
    since: datetime | None = None
    next_try_at: datetime | None = None
    subscription_id: int | None = None
    delivery_id: int | None = None
    waiting: Bounded = NONE_WAITING
    oldest_at: datetime | None = None
    parts: int = 0
    down: int = 0

    @property
    def why(self) -> str:
        """The cause in words; empty if there is nothing to say."""
        if self.cause is None:
            return "the oldest waits too long" if self.state == State.SLOW else ""
        return _WHY[self.cause].format(holder=self.holder, reason=self.reason or "no reason known")


_WHY = {
    Cause.INACTIVE: "the {holder} is INACTIVE",
    Cause.SHADOW: "the {holder} is SHADOW: matches are recorded, nothing is sent",
    Cause.HELD: "a person holds the {holder}",
    Cause.CANCELLING: "its held deliveries are being cancelled",
    Cause.BLOCKED: "{reason}",
    Cause.SUSPENDED: "{reason}",
    Cause.DISABLED: "{reason}",
    Cause.FROZEN: "{reason}",
    Cause.DOWN: "{reason}",
}


def worst_of(parts: Collection[Standing]) -> Standing:
    """Return how a thing of these subscriptions stands; without any it is QUIET."""
    if not parts:
        return Standing()
    sendable = [part for part in parts if part.state not in BY_A_PERSON]
    waiting = [part.oldest_at for part in waiting_parts(parts) if part.oldest_at is not None]
    return replace(
        min(parts, key=_badness),
        oldest_at=min(waiting, default=None),
        parts=len(sendable),
        down=sum(part.state in IN_TROUBLE for part in sendable),
    )


def waiting_parts(parts: Collection[Standing]) -> list[Standing]:
    """Return the parts that have the open deliveries of the thing.

    Without sendable parts these are the parts that a release of the subscriber or of all sending
    would send.
    """
    sendable = [part for part in parts if part.state not in BY_A_PERSON]
    released = [part for part in parts if part.holder != Holder.SUBSCRIPTION]
    return list(sendable or released or parts)


def group_of(endpoints: Collection[Standing]) -> Standing:
    """Return how a queue group of these endpoints stands.

    It is STOPPED if every sendable endpoint is in trouble, and DOWN if some are.
    """
    group = worst_of(endpoints)
    if group.state not in IN_TROUBLE:
        return group
    return replace(group, state=State.STOPPED if group.down == group.parts else State.DOWN)


def _badness(part: Standing) -> tuple[int, float]:
    """Order by state, and the longest first."""
    moment = part.since or part.oldest_at
    return _OF_PARTS.index(part.state), moment.timestamp() if moment else float("inf")
