"""Publishers, subscribers, event types and subscriptions, created through the models."""

from datetime import datetime, timedelta
from typing import Any

from delivery.models import Lane, LaneKind
from subscriptions.filters import filter_identity
from subscriptions.models import (
    ApiKey,
    EventType,
    Kind,
    Mode,
    Policy,
    Publisher,
    Scope,
    SigningSecret,
    Subscriber,
    Subscription,
)
from subscriptions.models.api_key import new_key
from tests.support.many.sizes import Sizes

_AREAS = (
    "TeamForge.Artifact",
    "TeamForge.Document",
    "Workfront.Task",
    "GitHub.Issues",
    "Build",
    "Order",
)
_VERBS = ("Create", "Update", "Delete", "Move", "Comment", "Assign", "Close")
_POLICIES = ("teamforge", "teamforge", "strict", "workfront-2017", "workfront-48h", "webmethods")
GROUP = 3
# The prefix of the publishers' names.
APPLICATION = "application-"


def configure(sizes: Sizes, *, now: datetime) -> None:
    event_types = EventType.objects.bulk_create(
        EventType(
            name=f"{_AREAS[number % 6]}.{_VERBS[number % 7]}{number:03}",
            kind=Kind.QUEUE if number % 10 == 3 else Kind.TOPIC,
            description="What it is about, in a sentence or two. " * (number % 3),
            sample={"action": "created", "project": {"id": "proj1008"}},
        )
        for number in range(sizes.event_types)
    )
    publishers = Publisher.objects.bulk_create(
        Publisher(name=f"{APPLICATION}{number:02}") for number in range(sizes.publishers)
    )
    subscribers = Subscriber.objects.bulk_create(
        Subscriber(
            name=f"subscriber-{number:04}",
            description="" if number % 4 else "Of the sales department.",
        )
        for number in range(sizes.subscribers)
    )
    Lane.objects.bulk_create(
        Lane(kind=LaneKind.TOPIC, subscriber=subscriber) for subscriber in subscribers
    )
    _subscribe(sizes, event_types, subscribers)
    _make_keys(publishers, subscribers, now=now)


def _subscribe(sizes: Sizes, event_types: list[EventType], subscribers: list[Subscriber]) -> None:
    policies = {policy.name: policy for policy in Policy.objects.all()}
    # Subscriptions of each event type so far: every three of a QUEUE are a group.
    counts = [0] * len(event_types)
    rows = []
    for number in range(sizes.subscriptions):
        place = (number // len(subscribers) * 67 + number) % len(event_types)
        rows.append(
            Subscription(
                name=f"subscription-{number:04}",
                subscriber=subscribers[number % len(subscribers)],
                event_type=event_types[place],
                policy=policies[_POLICIES[number % 6]],
                timeout_seconds=30,
                **_destination(number, event_types[place], counts[place]),
            )
        )
        counts[place] += 1
    made = Subscription.objects.bulk_create(rows)
    SigningSecret.objects.bulk_create(
        SigningSecret(subscription=row) for row in made if row.mode == Mode.PUSH
    )


def _destination(number: int, event_type: EventType, place: int) -> dict[str, Any]:
    endpoint = f"https://receiver-{number % 97}.example/hooks/{number}"
    if event_type.kind == Kind.QUEUE:
        return {"endpoint": endpoint, "header_filter_string": f"group-{place // GROUP}"}
    if number % 10 == 7:
        return {"mode": Mode.PULL}
    text = "" if number % 2 else f"$$->'Body'->>'number' > '{number}'"
    return {"endpoint": endpoint, "filter": text, "filter_identity": filter_identity(text)}


def _make_keys(
    publishers: list[Publisher], subscribers: list[Subscriber], *, now: datetime
) -> None:
    keys = [ApiKey(scope=Scope.PUBLISH, publisher=publisher) for publisher in publishers]
    keys += [ApiKey(scope=Scope.FETCH, subscriber=subscriber) for subscriber in subscribers[7::10]]
    for number, key in enumerate(keys):
        key.set_key(new_key())
        key.last_used_at = now - timedelta(minutes=number)
    ApiKey.objects.bulk_create(keys)
