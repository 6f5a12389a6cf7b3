"""The creation and deletion of subscriptions by Workfront's clients.

A Workfront subscription belongs to no subscriber. Here it belongs to the subscriber of the URL's
host, `workfront-<host>`, which is created if missing: so a hanging host does not delay the others.
The event type, `Workfront.<objCode>.<eventType>`, is created as well. If two clients create the
same subscription at the same time, the unique digest of the row lets one of them succeed; the other
gets 409, and nothing of it is stored. All rows are created in a transaction, with their entries in
the configuration log.
"""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

import orjson
from django.db import IntegrityError, models, transaction

from delivery.api.subscribing.subscriptions import SubscriptionFields
from delivery.incoming.problems import Problem, invalid_field, invalid_fields
from delivery.support import toggle
from delivery.vendors.workfront.translate import Translation, translate_document
from subscriptions import changes
from subscriptions.checks.addresses import address_refusals
from subscriptions.dependents import first_dependents
from subscriptions.filters import filter_identity
from subscriptions.models import (
    EventType,
    SigningSecret,
    Subscriber,
    Subscription,
    WorkfrontSubscription,
)
from subscriptions.values.endpoints import EndpointError, parse_url
from subscriptions.values.names import MAX_NAME_LENGTH

POLICY = "workfront-48h"
TIMEOUT_SECONDS = 5
_USUAL_PORTS = (80, 443)
# Workfront's names for the fields of a subscription.
_FIELDS = {
    "endpoint": "url",
    "auth": "authToken",
    "filter": "filters",
    "event_type": "eventType",
    "script": "base64Encoding",
}
Made = TypeVar("Made", bound=models.Model)


@dataclass(frozen=True, slots=True)
class CreatedSubscription:
    row: WorkfrontSubscription
    differences: Sequence[str]


def create_subscription(document: Mapping[str, Any], *, actor: str) -> CreatedSubscription:
    """Create the subscription of the document.

    Raise Problem 400 if Inturn does not support it, 409 if it exists already.
    """
    translation = translate_document(document)
    if translation.reasons:
        raise invalid_fields([asdict(reason) for reason in translation.reasons])
    url: str = document["url"]
    _check_url(url)
    with transaction.atomic():
        event_type = _made_once(EventType, translation.event_type, actor=actor)
        subscriber = _made_once(Subscriber, subscriber_name(url), actor=actor)
        row = WorkfrontSubscription(
            document=_without_token(document), digest=_digest(url, translation)
        )
        row.subscription = _subscription(
            {
                "name": f"workfront-{row.pk}",
                "subscriber": subscriber.name,
                "event_type": event_type.name,
                "endpoint": url,
                "filter": translation.filter,
                "script": translation.script,
                "policy": POLICY,
                "timeout_seconds": TIMEOUT_SECONDS,
                "auth": {"type": "bearer", "token": document["authToken"]},
            }
        )
        _save(row)
        changes.record_change(
            actor=actor,
            action="created",
            instance=row.subscription,
            before=None,
            after=changes.snapshot(row.subscription),
        )
    return CreatedSubscription(row, translation.differences)


def delete_subscription(row: WorkfrontSubscription, *, actor: str) -> None:
    """Delete the subscription; if it has deliveries, keep them and make it INACTIVE."""
    with transaction.atomic():
        # The lock keeps publishers from referring to it until this transaction ends.
        locked = Subscription.objects.select_for_update(of=("self",)).filter(pk=row.subscription_id)
        subscription = locked.select_related("subscriber").first()
        if subscription is None:
            return
        if first_dependents(subscription):
            WorkfrontSubscription.objects.filter(pk=row.pk).delete()
            toggle.deactivate_owner(subscription, actor=actor)
            return
        before = changes.snapshot(subscription)
        changes.record_change(
            actor=actor, action="deleted", instance=subscription, before=before, after=None
        )
        subscription.delete()


def subscriber_name(url: str) -> str:
    """Return the name of the subscriber for this URL's host."""
    endpoint = parse_url(url)
    port = "" if endpoint.port in _USUAL_PORTS else f"-{endpoint.port}"
    host = re.sub(r"[^A-Za-z0-9._-]", "-", endpoint.host)
    return f"workfront-{host}"[: MAX_NAME_LENGTH - len(port)] + port


def _check_url(url: str) -> None:
    """Refuse URLs to which Inturn does not send.

    It queries a name server, and therefore holds no lock.
    """
    try:
        parse_url(url)
    except EndpointError as error:
        raise invalid_field("url", str(error)) from None
    for reason in address_refusals({"endpoint": url}).values():
        raise invalid_field("url", reason)


def _made_once(model: type[Made], name: str, *, actor: str) -> Made:
    found, is_new = model._default_manager.get_or_create(name=name)
    if is_new:
        changes.record_change(
            actor=actor,
            action="created",
            instance=found,
            before=None,
            after=changes.snapshot(found),
        )
    return found


def _subscription(fields: Mapping[str, Any]) -> Subscription:
    serializer = SubscriptionFields(data=fields)
    if not serializer.is_valid():
        raise invalid_fields(
            [
                {"field": _FIELDS.get(name, name), "detail": str(detail)}
                for name, details in serializer.errors.items()
                for detail in (details if isinstance(details, list) else [details])
            ]
        )
    subscription: Subscription = serializer.save()
    SigningSecret.objects.create(subscription=subscription)
    return subscription


def _save(row: WorkfrontSubscription) -> None:
    try:
        with transaction.atomic():
            row.save(force_insert=True)
    except IntegrityError:
        detail = (
            "There is a subscription for the same events, filters and URL already; "
            "delete that one first, or keep it."
        )
        raise Problem(409, "duplicate-subscription", detail) from None


def _without_token(document: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in document.items() if name != "authToken"}


def _digest(url: str, translation: Translation) -> bytes:
    """Return a digest, equal for subscriptions with the same messages and the same URL."""
    same = [translation.event_type, url, filter_identity(translation.filter)]
    if translation.script:
        same.append("base64")
    return hashlib.sha256(orjson.dumps(same)).digest()
