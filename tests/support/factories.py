"""Valid rows for tests: each function creates a row with the needed rows.

The status of a delivery implies its timestamps: `delivery(status=Status.DELIVERED)` has been tried
once and was settled after the publication of the message.
"""

import itertools
import uuid
from datetime import timedelta
from typing import Any

from django.db import connection
from django.utils import timezone

from delivery.models import (
    Attempt,
    Delivery,
    EndpointHealth,
    Incident,
    IncidentDelivery,
    IncidentKind,
    IncidentState,
    LoggedAttempt,
    Message,
    delivery_id,
)
from delivery.states import OPEN, OutcomeClass, Status
from subscriptions.models import (
    ApiKey,
    EventType,
    Mode,
    Policy,
    Publisher,
    Scope,
    SigningSecret,
    Subscriber,
    Subscription,
)
from subscriptions.models.api_key import new_key

_numbers = itertools.count(1)

# A delivery is settled so long after the message was published, by default so long ago: whatever a
# test does afterwards is later.
SETTLED_AFTER = timedelta(milliseconds=20)

_OUTCOMES = {
    Status.DELIVERED: (OutcomeClass.SUCCESS, 200),
    Status.REJECTED: (OutcomeClass.CLIENT_ERROR, 404),
    Status.UNSUPPORTED: (OutcomeClass.REDIRECT, 301),
    Status.FAILED: (OutcomeClass.UNSENDABLE, None),
    Status.IN_DOUBT: (OutcomeClass.LOST, None),
}


def unique(name: str) -> str:
    return f"{name}{next(_numbers)}"


def event_type(name: str | None = None, **fields: Any) -> EventType:
    return EventType.objects.create(name=name or unique("Test.Event"), **fields)


def publisher(name: str | None = None, **fields: Any) -> Publisher:
    return Publisher.objects.create(name=name or unique("publisher"), **fields)


def subscriber(name: str | None = None, **fields: Any) -> Subscriber:
    return Subscriber.objects.create(name=name or unique("subscriber"), **fields)


def policy(name: str | None = None, **fields: Any) -> Policy:
    """Return the policy of the name, or create it."""
    found = Policy.objects.filter(name=name).first() if name and not fields else None
    return found or Policy.objects.create(name=name or unique("policy"), **fields)


def subscription(name: str | None = None, **fields: Any) -> Subscription:
    """Create an ACTIVE PUSH subscription with a secret.

    `mode=Mode.PULL` creates a mailbox, which has no secret.
    """
    fields.setdefault("subscriber", None)
    fields["subscriber"] = fields["subscriber"] or subscriber()
    if "event_type" not in fields:
        fields["event_type"] = event_type()
    if "policy" not in fields:
        fields["policy"] = policy("teamforge")
    if fields.get("mode", Mode.PUSH) == Mode.PUSH:
        fields.setdefault("endpoint", "https://receiver.example/hook")
    row = Subscription.objects.create(name=name or unique("subscription"), **fields)
    if row.mode == Mode.PUSH:
        SigningSecret.objects.create(subscription=row)
    return row


def message(body: bytes = b'{"number": 1}', **fields: Any) -> Message:
    if "event_type" not in fields:
        fields["event_type"] = event_type()
    if "publisher" not in fields:
        fields["publisher"] = publisher()
    fields.setdefault("content_type", "application/json")
    fields.setdefault("headers", {"content-type": fields["content_type"]})
    fields.setdefault("published_at", timezone.now() - SETTLED_AFTER)
    return Message.objects.create(body=body, **fields)


def delivery(status: Status = Status.PENDING, **fields: Any) -> Delivery:
    """Create a delivery with the attempt behind the status, if any."""
    fields["subscription"] = fields.get("subscription") or subscription()
    subscribed: Subscription = fields["subscription"]
    fields["message"] = fields.get("message") or message(event_type=subscribed.event_type)
    if subscribed.mode == Mode.PUSH:
        fields.setdefault("lane", subscribed.subscriber.lane)
    if fields.get("skipped"):
        fields.setdefault("next_attempt_at", timezone.now())
    fields.setdefault("pk", new_delivery_id(fields["message"]))
    row = Delivery.objects.create(status=status, **_implied(status, fields["message"]) | fields)
    if status in _OUTCOMES and "attempts" not in fields:
        attempt(row)
    return row


def endpoint_down(by: Delivery, **fields: Any) -> EndpointHealth:
    """Create the row of the endpoint DOWN because of the delivery."""
    given = {
        "lane_id": by.lane_id,
        "delivery_id": by.pk,
        "reason": "503: busy",
        "failures": 1,
    } | fields
    given.setdefault("next_try_at", timezone.now() + timedelta(seconds=40))
    return EndpointHealth.objects.create(subscription=by.subscription, **given)


def incident(by: Delivery, **fields: Any) -> Incident:
    """Create an open incident of failures with this delivery."""
    now = timezone.now()
    made = Incident.objects.create(
        **{
            "key": f"FAILURES {by.subscription_id} {unique('40')}",
            "kind": IncidentKind.FAILURES,
            "state": IncidentState.OPEN,
            "subscription_id": by.subscription_id,
            "delivery_id": by.pk,
            "subject": f"{by.subscription} fails: 404",
            "cause": "404",
            "count": 1,
            "first_at": now,
            "absent_since": now,
            "opened_at": now,
            "announced_at": now,
            **fields,
        }
    )
    IncidentDelivery.objects.create(incident=made, delivery_id=by.pk)
    return made


def attempt(of: Delivery, **fields: Any) -> Attempt:
    """Create the delivery's latest attempt; the outcome follows from the status."""
    outcome, status_code = _OUTCOMES.get(Status(of.status), (OutcomeClass.SERVER_ERROR, 500))
    fields.setdefault("outcome", outcome)
    fields.setdefault("status_code", status_code)
    fields.setdefault("number", max(of.attempts, 1))
    fields.setdefault("started_at", of.message.published_at)
    fields.setdefault("duration_ms", None if outcome == OutcomeClass.LOST else 5)
    LoggedAttempt.objects.create(delivery=of, **fields)
    return Attempt.objects.get(delivery=of, number=fields["number"])


def new_delivery_id(message: Message) -> int:
    """Return the id of another delivery of the message, greater than the existing ones."""
    return delivery_id(message.pk, next(_numbers))


def settle(row: Delivery, status: Status) -> None:
    """Settle an open delivery as the product's statements do.

    An UPDATE of the status would fail deliveries waiting for it.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            """
            WITH gone AS (
                DELETE FROM delivery_waiting delivery
                WHERE id = %s
                RETURNING delivery AS waiting, attempts, redelivery
            )
            INSERT INTO delivery_settled
            SELECT settled.*
            FROM gone
            CROSS JOIN (SELECT delivery_clock() AS now) AS clock
            CROSS JOIN LATERAL delivery_settled_as(
                gone.waiting, %s, gone.attempts, '', clock.now, gone.redelivery
            ) AS settled
            """,
            [row.pk, status.value],
        )


def api_key(scope: Scope = Scope.MANAGE, **fields: Any) -> tuple[ApiKey, str]:
    """Return the row and the key itself, which is stored nowhere."""
    if scope == Scope.PUBLISH:
        fields.setdefault("publisher", None)
        fields["publisher"] = fields["publisher"] or publisher()
    if scope == Scope.FETCH:
        fields.setdefault("subscriber", None)
        fields["subscriber"] = fields["subscriber"] or subscriber()
    key = new_key()
    row = ApiKey(scope=scope, **fields)
    row.set_key(key)
    row.save()
    return row, key


def _implied(status: Status, of: Message) -> dict[str, Any]:
    settled_at = of.published_at + SETTLED_AFTER
    implied: dict[str, Any] = {} if status in OPEN else {"settled_at": settled_at}
    if status in _OUTCOMES:
        implied["attempts"] = 1
    if status == Status.IN_FLIGHT:
        implied |= {
            "lease_token": uuid.uuid4(),
            "lease_expires_at": settled_at + timedelta(seconds=30),
        }
    return implied
