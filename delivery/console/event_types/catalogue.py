"""The event catalogue: everything needed to publish an event type or to subscribe to it."""

import json
import shlex
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db.models import Count, Q

from delivery.console.event_types import queue_groups
from delivery.database.queries import named_rows
from delivery.models.message import public_id
from delivery.publishing.json_schema import Violation, first_violation
from subscriptions.models import EventType, Publisher, Subscription, SubscriptionStatus
from subscriptions.values.names import is_reserved

SHOWN_PUBLISHERS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Newest:
    """The newest message of an event type."""

    message_id: int
    published_at: datetime

    @property
    def public_id(self) -> str:
        return public_id(self.message_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogueEntry:
    """A page of the catalogue.

    `sample` and `json_schema` are indented JSON, empty if there is none.
    """

    event_type: EventType
    sample: str
    json_schema: str
    violation: Violation | None
    publishers: list[Publisher]
    more_publishers: bool
    active: int
    inactive: int
    newest: Newest | None
    groups: list[queue_groups.QueueGroup]
    publish_command: str
    subscribe_command: str

    @property
    def is_reserved(self) -> bool:
        return is_reserved(self.event_type.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class EventExample:
    """An event type for a publisher's developer; sample and schema as in `CatalogueEntry`."""

    event_type: EventType
    sample: str
    json_schema: str
    publish_command: str


def example_of(event_type: EventType) -> EventExample:
    return EventExample(
        event_type=event_type,
        sample=_pretty(event_type.sample),
        json_schema=_pretty(event_type.json_schema),
        publish_command=_publish_command(event_type),
    )


def newest_of(ids: Collection[int]) -> dict[int, Newest]:
    """Return the newest message by event type, without event types without messages."""
    rows = named_rows("newest_of_event_types", {"ids": list(ids)})
    return {
        row["id"]: Newest(message_id=row["message_id"], published_at=row["published_at"])
        for row in rows
    }


def read_catalogue_entry(event_type: EventType) -> CatalogueEntry:
    allowed = Publisher.objects.filter(
        Q(all_event_types=True) | Q(event_types=event_type)
    ).distinct()
    publishers = list(allowed.order_by("name")[: SHOWN_PUBLISHERS + 1])
    counted = Subscription.objects.filter(event_type=event_type).aggregate(
        active=Count("pk", filter=Q(status=SubscriptionStatus.ACTIVE)), all=Count("pk")
    )
    return CatalogueEntry(
        event_type=event_type,
        sample=_pretty(event_type.sample),
        json_schema=_pretty(event_type.json_schema),
        violation=violation_of_sample(event_type),
        publishers=publishers[:SHOWN_PUBLISHERS],
        more_publishers=len(publishers) > SHOWN_PUBLISHERS,
        active=counted["active"],
        inactive=counted["all"] - counted["active"],
        newest=newest_of([event_type.pk]).get(event_type.pk),
        groups=queue_groups.groups_of_event_type(event_type),
        publish_command=_publish_command(event_type),
        subscribe_command=_subscribe_command(event_type),
    )


def violation_of_sample(event_type: EventType) -> Violation | None:
    """Return where the sample breaks the schema: a message with this body would be refused."""
    return None if event_type.sample is None else first_violation(event_type, event_type.sample)


def _publish_command(event_type: EventType) -> str:
    body = "{}" if event_type.sample is None else json.dumps(event_type.sample, ensure_ascii=False)
    content_type = shlex.quote(f"Content-Type: {event_type.content_type}")
    return (
        f'curl -H "Authorization: Bearer $PUBLISHER_KEY" -H {content_type} \\\n'
        f"     {settings.ENVIRONMENT.base_url}/api/v1/events/{event_type.name}/messages \\\n"
        f"     -d {shlex.quote(body)}"
    )


def _subscribe_command(event_type: EventType) -> str:
    fields = {
        "name": "my-subscription",
        "subscriber": "my-application",
        "event_type": event_type.name,
        "endpoint": "https://example.com/hook",
    }
    return (
        'curl -H "Authorization: Bearer $MANAGE_KEY" -H "Content-Type: application/json" \\\n'
        f"     {settings.ENVIRONMENT.base_url}/api/v1/subscriptions \\\n"
        f"     -d {shlex.quote(json.dumps(fields))}"
    )


def _pretty(value: Any) -> str:
    return "" if value is None else json.dumps(value, indent=2, ensure_ascii=False)
