"""Repeated messages for tests of dedup: subscriptions, drafts, and the fates of deliveries."""

from typing import Any

from django.utils import timezone

from delivery.models import Delivery, Status
from delivery.publishing.drafts import Draft
from delivery.publishing.publish import publish
from subscriptions.models import DedupMode, EventType, Publisher, Subscription
from tests.support import factories

ID = "$$->'Body'->'id'"


def by_key(event_type: EventType, **fields: Any) -> Subscription:
    return factories.subscription(event_type=event_type, dedup_mode=DedupMode.KEY, **fields)


def by_path(event_type: EventType, path: str = ID, **fields: Any) -> Subscription:
    return factories.subscription(
        event_type=event_type, dedup_mode=DedupMode.PATH, dedup_path=path, **fields
    )


def keyed(event_type: EventType, key: str = "k", body: bytes = b"{}") -> Draft:
    return Draft(
        event_type=event_type, headers={"idempotency-key": key}, body=body, idempotency_key=key
    )


def plain(event_type: EventType, body: bytes, **headers: str) -> Draft:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Draft(event_type=event_type, headers=named, body=body, content_type="text/plain")


def published(*drafts: Draft, by: Publisher | None = None) -> list[Delivery]:
    """Publish them in one transaction; return their deliveries, in that order."""
    accepted = publish(by or factories.publisher(), drafts)
    ids = [answer.message_id for answer in accepted]
    return list(Delivery.objects.filter(message__in=ids).order_by("id"))


def settle(delivery: Delivery, status: Status) -> None:
    """Settle it as a sender, or a person, would have left it."""
    settled_at = None if status in (Status.PENDING, Status.IN_FLIGHT) else timezone.now()
    Delivery.objects.filter(pk=delivery.pk).update(status=status, settled_at=settled_at)


def status_of(delivery: Delivery) -> str:
    delivery.refresh_from_db()
    return delivery.status
