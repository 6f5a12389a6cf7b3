"""An example from end to end: event type, publisher, and a subscription to a built-in receiver.

All objects are created in a transaction, and recorded like any other change. Existing objects, by
name, stay as they are, so a second call changes nothing. One exception: a subscription whose
receiver had another URL, because INTURN_BASE_URL has changed, gets the receiver's URL of today.
"""

from dataclasses import dataclass
from typing import Any, TypeVar

from django.db import models, transaction

from delivery.models import BuiltInReceiver
from delivery.receivers.stored_requests import url_of
from subscriptions import changes
from subscriptions.models import (
    EventType,
    Policy,
    Publisher,
    SigningSecret,
    Subscriber,
    Subscription,
)
from subscriptions.values.built_in_receivers import PATH

EVENT_TYPE = "Example.Greeting"
PUBLISHER = SUBSCRIBER = RECEIVER = "example"
SUBSCRIPTION = "greetings"
POLICY = "teamforge"
SAMPLE = {"text": "Hello, world", "language": "en"}
_ABOUT = "Created by First steps. Delete it when it is no longer needed."

ExampleRow = TypeVar("ExampleRow", bound=models.Model)


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    event_type: EventType
    publisher: Publisher
    subscription: Subscription
    receiver: BuiltInReceiver


@transaction.atomic
def create_example(*, actor: str) -> Example:
    """Create the missing parts, and return all of them."""
    event_type = _created_once(
        EventType, {"name": EVENT_TYPE}, {"sample": SAMPLE, "description": _ABOUT}, actor=actor
    )
    publisher = _created_once(
        Publisher,
        {"name": PUBLISHER},
        {"all_event_types": False, "description": _ABOUT},
        actor=actor,
    )
    if not publisher.may_publish(event_type):
        publisher.event_types.add(event_type)
    subscriber = _created_once(
        Subscriber, {"name": SUBSCRIBER}, {"description": _ABOUT}, actor=actor
    )
    receiver = _created_once(
        BuiltInReceiver, {"name": RECEIVER}, {"description": _ABOUT}, actor=actor
    )
    subscription = _subscribed(event_type, subscriber, receiver, actor=actor)
    return Example(
        event_type=event_type, publisher=publisher, subscription=subscription, receiver=receiver
    )


def _subscribed(
    event_type: EventType, subscriber: Subscriber, receiver: BuiltInReceiver, *, actor: str
) -> Subscription:
    """Return the subscription to the receiver, created if its name is free."""
    values = {
        "event_type": event_type,
        "policy": Policy.objects.get(name=POLICY),
        "endpoint": url_of(receiver),
    }
    row = _created_once(
        Subscription, {"subscriber": subscriber, "name": SUBSCRIPTION}, values, actor=actor
    )
    SigningSecret.objects.get_or_create(subscription=row)
    if row.endpoint != url_of(receiver) and row.endpoint.endswith(f"{PATH}{receiver.token}"):
        before = changes.snapshot(row)
        row.endpoint = url_of(receiver)
        row.save(update_fields=["endpoint", "updated_at"])
        changes.record_change(
            actor=actor,
            action="changed",
            instance=row,
            before=before,
            after=changes.snapshot(row),
        )
    return row


def _created_once(
    model: type[ExampleRow], key: dict[str, Any], values: dict[str, Any], *, actor: str
) -> ExampleRow:
    row, is_new = model._default_manager.get_or_create(**key, defaults=values)
    if is_new:
        changes.record_change(
            actor=actor, action="created", instance=row, before=None, after=changes.snapshot(row)
        )
    return row
