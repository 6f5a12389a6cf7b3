"""Existing ids, names and moments for `bench console`, spread over the whole range."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeVar

from django.db.models import Max, Min, Model, QuerySet

from delivery.models import Attempt, Delivery, Lane, LaneState, Message
from delivery.models.message import public_id
from subscriptions.models import EventType, Publisher, Subscriber, Subscription

Row = TypeVar("Row", bound=Model)
# The number of each kind: different rows, so not every page is answered from a warm cache.
EACH = 4
AGES = (timedelta(minutes=30), timedelta(hours=20), timedelta(days=3), timedelta(days=12))


@dataclass(frozen=True, slots=True, kw_only=True)
class Samples:
    """`texts` has the values of typed filters, by the name of the parameter."""

    now: datetime
    messages: list[int]
    deliveries: list[int]
    subscribers: list[Subscriber]
    subscriptions: list[Subscription]
    texts: dict[str, list[str]]


def read_samples(*, now: datetime) -> Samples:
    messages, deliveries = spread(Message), [*_stopping(), *_most_tried(), *spread(Delivery)]
    subscribers = _spread_rows(Subscriber.objects.all())
    subscriptions = _spread_rows(Subscription.objects.select_related("subscriber"))
    moments = [f"{now - age:%Y-%m-%dT%H:%M:%S}" for age in AGES]
    return Samples(
        now=now,
        messages=messages,
        deliveries=deliveries,
        subscribers=subscribers,
        subscriptions=subscriptions,
        texts={
            "subscriber": [row.name for row in subscribers],
            "subscription": [
                *(str(row.pk) for row in subscriptions[:2]),
                *(row.name for row in subscriptions[2:]),
            ],
            "message": [public_id(id) for id in messages],
            "event_type": [row.name for row in _spread_rows(EventType.objects.all())],
            "publisher": [row.name for row in _spread_rows(Publisher.objects.all())],
            "since": moments,
            "until": moments,
            # In every body of the generator, at the end of an old body of the day, and in none.
            "body": ["repository", *_references(now), "nobody ever wrote this"],
            "id_from": [public_id(id) for id in messages],
            "id_to": [public_id(id) for id in messages],
        },
    )


def spread(model: type[Model]) -> list[int]:
    """Return ids from the oldest to the newest: the first of each part of their range."""
    rows = model._default_manager.order_by("pk").values_list("pk", flat=True)
    ends = model._default_manager.aggregate(first=Min("pk", default=0), last=Max("pk", default=0))
    first, last = ends["first"], ends["last"]
    parts = [first + (last - first) * number // EACH for number in range(EACH)]
    return sorted({id for part in parts for id in rows.filter(pk__gte=part)[:1]} | {last})


def _spread_rows(rows: QuerySet[Row]) -> list[Row]:
    return list(rows.filter(pk__in=spread(rows.model)))


def _references(now: datetime) -> list[str]:
    """Return the last characters of a body from the beginning of the last day."""
    oldest = Message.objects.filter(published_at__gt=now - timedelta(hours=23)).order_by(
        "published_at"
    )
    return [bytes(message.body[-20:-2]).decode("ascii", "ignore") for message in oldest[:1]]


def _stopping() -> list[int]:
    lanes = Lane.objects.filter(state=LaneState.BLOCKED, delivery_id__isnull=False)
    return [id for id in lanes.values_list("delivery_id", flat=True)[:2] if id is not None]


def _most_tried() -> list[int]:
    newest = Attempt.objects.filter(number__gte=5).order_by("-delivery_id")
    return list(newest.values_list("delivery_id", flat=True)[:2])
