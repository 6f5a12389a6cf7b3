"""Calling a subscription's endpoint once, outside its lane, while somebody waits for the answer."""

from django.conf import settings
from django.db import connection

from delivery.calls import Called, call
from delivery.outcome import unsendable
from delivery.senders.endpoints import endpoint_of
from delivery.senders.parcel import Endpoint
from delivery.senders.request import Request
from delivery.sql import statement


def endpoint_now(subscription_id: int) -> Endpoint | None:
    """Return the endpoint as it is stored; None when the subscription is gone."""
    with connection.cursor() as cursor:
        cursor.execute(statement("endpoints"), {"subscription": [subscription_id]})
        row = cursor.fetchone()
        names = [column[0] for column in cursor.description]
    return None if row is None else endpoint_of(dict(zip(names, row, strict=True)))


def call_now(request: Request) -> Called:
    """Call it as the senders would, guarded as they are; what is wrong on our side is an outcome too."""
    if fault := request.endpoint.fault:
        return Called(unsendable(fault, now=request.made_at))
    return call(request, allowed_networks=settings.ENVIRONMENT.allowed_networks)
