"""The reason why an open delivery waits, in words, and the time of the next try."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from delivery.models import Delivery, EndpointState, EndpointSummary, Lane, LaneKind, LaneState
from delivery.states import Status
from subscriptions.models import JoinMode, Mode

_STOPPED = (LaneState.BLOCKED, LaneState.SUSPENDED)


@dataclass(frozen=True, slots=True, kw_only=True)
class NextTry:
    """A delivery's next try.

    `at` is None when a person has to act first, or when the delivery only waits for its turn, the
    usual case.
    """

    words: str
    at: datetime | None = None
    is_usual: bool = False


def next_tries(deliveries: Sequence[Delivery]) -> dict[int, NextTry]:
    """Return the next try of each delivery to be sent.

    Load only the endpoints possibly not UP.
    """
    waiting = [
        row
        for row in deliveries
        if row.status == Status.PENDING and row.subscription.mode != Mode.PULL
    ]
    subscription_ids = {row.subscription_id for row in waiting if _may_be_down(row)}
    summaries = (
        EndpointSummary.objects.exclude(state=EndpointState.UP).in_bulk(subscription_ids)
        if subscription_ids
        else {}
    )
    return {
        row.pk: _of(row, summaries.get(row.subscription_id) if _may_be_down(row) else None)
        for row in waiting
    }


def _may_be_down(row: Delivery) -> bool:
    """Return whether lane and policy allow the endpoint to be anything but UP.

    A callback does not go to the subscription's endpoint.
    """
    is_stopped = row.lane is not None and (
        row.lane.kind == LaneKind.QUEUE or row.lane.state in _STOPPED
    )
    return row.callback_id is None and (is_stopped or row.subscription.policy.breaks_circuit)


def _of(row: Delivery, endpoint: EndpointSummary | None) -> NextTry:
    if owner := row.subscription.held_by:
        return NextTry(words=f"held: {owner} is {owner.status}; activate it to send it")
    if endpoint is not None and endpoint.state != EndpointState.DOWN:
        return _of_url(endpoint)
    if row.lane is None and row.subscription.join_mode == JoinMode.ALL:
        return NextTry(words="waits for the other messages of its join")
    if row.lane is None:
        return NextTry(words="sent at once: its publisher waits for the response")
    if row.lane.state in _STOPPED and not row.lane.run_is_concurrent:
        return _of_stopped(row, row.lane)
    if endpoint is not None and row.lane.kind != LaneKind.RETRY:
        moments = [at for at in (row.next_attempt_at, endpoint.next_try_at) if at is not None]
        return NextTry(
            words="its endpoint is DOWN and is called again", at=max(moments, default=None)
        )
    if row.next_attempt_at is not None:
        return NextTry(words="scheduled retry", at=row.next_attempt_at)
    return NextTry(words="next in its lane", is_usual=True)


def _of_url(endpoint: EndpointSummary) -> NextTry:
    if endpoint.state == EndpointState.FROZEN:
        return NextTry(words="waits: its URL is FROZEN; release the URL to send it")
    return NextTry(
        words="waits for the next probe of its URL, which is DISABLED", at=endpoint.next_try_at
    )


def _of_stopped(row: Delivery, lane: Lane) -> NextTry:
    is_head = lane.delivery_id == row.pk
    if lane.state == LaneState.SUSPENDED and lane.next_try_at is None:
        return NextTry(words=f"waits: lane {lane} is SUSPENDED; resume the lane to send it")
    if lane.state == LaneState.SUSPENDED:
        return NextTry(
            words=f"waits: lane {lane} is SUSPENDED until its probe URL answers 2xx",
            at=lane.next_try_at,
        )
    if is_head:
        return NextTry(words=f"blocks lane {lane}, and is retried", at=lane.next_try_at)
    return NextTry(
        words=f"waits behind delivery {lane.delivery_id}, which is retried", at=lane.next_try_at
    )
