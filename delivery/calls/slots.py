"""Calling a subscription's endpoint once, outside its lane, while somebody waits for the answer.

The thread of the web server that waits is lost to others: so many may wait at a time, of each kind of call.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from django.conf import settings

from delivery.calls.http import Called, call
from delivery.database import queries
from delivery.outcome import unsendable
from delivery.senders.endpoints import endpoint_of
from delivery.senders.parcel import Endpoint
from delivery.senders.request import Request


class NoSlotError(Exception):
    """As many calls of that kind are under way as may be; the endpoint was not called."""


@contextmanager
def turn(kind: str, *, most: int) -> Iterator[None]:
    """Be one of at most so many, and one at least, in this process; raises NoSlotError."""
    taken = turns(kind, most)
    if not taken.acquire(blocking=False):
        raise NoSlotError
    try:
        yield
    finally:
        taken.release()


@cache
def turns(_kind: str, most: int) -> threading.Semaphore:
    """Return the turns of a kind of call: the same ones each time."""
    return threading.Semaphore(max(most, 1))


def endpoint_now(subscription_id: int) -> Endpoint | None:
    """Return the endpoint as it is stored; None when the subscription is gone."""
    found = queries.named_rows("endpoints", {"subscription": [subscription_id]})
    return endpoint_of(found[0]) if found else None


def call_now(request: Request) -> Called:
    """Call it as the senders would, guarded as they are; what is wrong on our side is an outcome too."""
    if fault := request.endpoint.fault:
        return Called(unsendable(fault, now=request.made_at))
    return call(request, allowed_networks=settings.ENVIRONMENT.allowed_networks)
