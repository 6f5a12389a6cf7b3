"""Calling a subscription's endpoint once, outside the lane, while a client waits for the answer.

A call blocks a web thread, so each kind of call has a limit.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from delivery.database import queries
from delivery.senders.endpoints import endpoint_of
from delivery.senders.parcel import Endpoint


class NoSlotError(Exception):
    """The limit of calls of this kind is reached; the endpoint was not called."""


@contextmanager
def call_slot(kind: str, *, most: int) -> Iterator[None]:
    """Take a slot, of `most`, of this process, at least one; raise NoSlotError."""
    taken = slots_of(kind, most)
    if not taken.acquire(blocking=False):
        raise NoSlotError
    try:
        yield
    finally:
        taken.release()


@cache
def slots_of(_kind: str, most: int) -> threading.Semaphore:
    """Return the slots of a kind of call: the same object each time."""
    return threading.Semaphore(max(most, 1))


def current_endpoint(subscription_id: int) -> Endpoint | None:
    """Return the stored endpoint; None if the subscription is deleted."""
    rows = queries.named_rows("endpoints", {"subscription": [subscription_id]})
    return endpoint_of(rows[0]) if rows else None
