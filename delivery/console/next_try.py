"""What an open delivery waits for, in words, and when it is tried next."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from delivery.console import url_health
from delivery.models import Delivery, Lane, LaneState, UrlHealth, UrlState
from delivery.states import Status
from subscriptions.models import Mode, SubscriptionStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class NextTry:
    """`at` is None when a person has to do something first, or when it only waits for its turn, as is usual."""

    words: str
    at: datetime | None = None
    is_usual: bool = False


def of_each(deliveries: Sequence[Delivery]) -> dict[int, NextTry]:
    """Return that of each delivery that is to be sent; asks for the URLs of those only whose policy leaves some alone."""
    waiting = [
        row for row in deliveries if row.status == Status.PENDING and row.subscription.mode != Mode.PULL
    ]
    watched = {row.subscription_id for row in waiting if _is_watched(row)}
    stopped = url_health.stopped(watched) if watched else {}
    return {
        row.pk: _of(row, stopped.get(row.subscription_id) if _is_watched(row) else None) for row in waiting
    }


def _is_watched(row: Delivery) -> bool:
    return row.subscription.policy.breaks_circuit and row.callback_id is None


def _of(row: Delivery, health: UrlHealth | None) -> NextTry:
    if row.subscription.status == SubscriptionStatus.INACTIVE:
        return NextTry(words=f"held: {row.subscription} is INACTIVE; make it ACTIVE to have it sent")
    if health is not None:
        return _of_url(health)
    if row.lane is None:
        return NextTry(words="its publisher waits for the answer")
    if row.lane.state in (LaneState.BLOCKED, LaneState.SUSPENDED) and not row.lane.run_is_concurrent:
        return _of_stopped(row, row.lane)
    if row.next_attempt_at is not None:
        return NextTry(words="it is tried again", at=row.next_attempt_at)
    return NextTry(words="as soon as its lane comes to it", is_usual=True)


def _of_url(health: UrlHealth) -> NextTry:
    if health.state == UrlState.FROZEN:
        return NextTry(words="waits: its URL is FROZEN; release the URL to have it sent")
    return NextTry(
        words="waits: its URL is DISABLED, and the next attempt there decides", at=health.next_probe_at
    )


def _of_stopped(row: Delivery, lane: Lane) -> NextTry:
    is_head = lane.delivery_id == row.pk
    if lane.state == LaneState.SUSPENDED and lane.next_try_at is None:
        return NextTry(words=f"waits: lane {lane} is SUSPENDED; resume it to have it sent")
    if lane.state == LaneState.SUSPENDED:
        return NextTry(words=f"waits: lane {lane} is SUSPENDED, its probe is asked", at=lane.next_try_at)
    if is_head:
        return NextTry(words=f"it blocks lane {lane}, and is tried again", at=lane.next_try_at)
    return NextTry(
        words=f"waits behind delivery {lane.delivery_id}, which is tried again", at=lane.next_try_at
    )
