"""The rows of `bench scale`, scenario `configuration`: many subscribers, subscriptions, filters."""

from dataclasses import dataclass

from delivery.models import Lane, LaneKind
from subscriptions.filters import filter_identity
from subscriptions.models import (
    EventType,
    Policy,
    Publisher,
    SigningSecret,
    Subscriber,
    Subscription,
)
from tests.bench.matching import FILTERS
from tests.bench.stage import BenchSetup, analyze

# True of the benchmark's message, so one of the many filters lets it through.
MATCHING_FILTER = "$$->'Body'->>'original' LIKE 'webhooks%'"
# The other subscriptions are spread over so many event types.
OTHER_EVENT_TYPES = 1_000
BATCH = 5_000


@dataclass(frozen=True, slots=True)
class ConfigurationSize:
    """Subscribers, each with a lane; subscriptions in all; and filters of an event type."""

    subscribers: int
    subscriptions: int
    filters: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ManySubscriptions:
    """`everybody`: each subscriber subscribes to it. `filtered`: one of many filters matches."""

    everybody: BenchSetup
    filtered: BenchSetup


def make_many(name: str, *, url: str, size: ConfigurationSize) -> ManySubscriptions:
    """Create the subscribers with their lanes, and the subscriptions in the given numbers."""
    publisher, _ = Publisher.objects.get_or_create(name="bench")
    subscribers = Subscriber.objects.bulk_create(
        (Subscriber(name=f"bench-{name}-{number}") for number in range(size.subscribers)),
        batch_size=BATCH,
    )
    Lane.objects.bulk_create(
        (Lane(kind=LaneKind.TOPIC, subscriber=subscriber) for subscriber in subscribers),
        batch_size=BATCH,
    )
    everybody, filtered = (
        EventType.objects.create(name=f"Bench.{name}-{kind}") for kind in ("everybody", "filtered")
    )
    others = EventType.objects.bulk_create(
        EventType(name=f"Bench.{name}-{number}") for number in range(OTHER_EVENT_TYPES)
    )
    rows = _Rows(url, subscribers)
    for number in range(size.subscribers):
        rows.add(everybody, number)
    for number in range(size.filters):
        text = FILTERS[number % len(FILTERS)].format(number=number)
        rows.add(filtered, number, MATCHING_FILTER if number == 0 else text)
    for number in range(size.subscriptions - len(rows.rows)):
        text = FILTERS[number % len(FILTERS)].format(number=number % 100)
        rows.add(others[number % OTHER_EVENT_TYPES], number, text)
    rows.save()
    analyze()
    return ManySubscriptions(
        everybody=BenchSetup(event_type=everybody, publisher=publisher, lanes=size.subscribers),
        filtered=BenchSetup(event_type=filtered, publisher=publisher, lanes=1),
    )


class _Rows:
    """Subscriptions to save, each with a secret."""

    def __init__(self, url: str, subscribers: list[Subscriber]) -> None:
        self._url = url
        self._subscribers = subscribers
        self._policy = Policy.objects.get(name="teamforge")
        self._identities: dict[str, str] = {}
        self.rows: list[Subscription] = []

    def add(self, event_type: EventType, number: int, filter_text: str = "") -> None:
        subscriber = self._subscribers[number % len(self._subscribers)]
        if filter_text not in self._identities:
            self._identities[filter_text] = filter_identity(filter_text)
        self.rows.append(
            Subscription(
                name=f"subscription-{len(self.rows)}",
                subscriber=subscriber,
                event_type=event_type,
                policy=self._policy,
                endpoint=f"{self._url}/lane/{subscriber.pk}",
                filter=filter_text,
                filter_identity=self._identities[filter_text],
            )
        )

    def save(self) -> None:
        made = Subscription.objects.bulk_create(self.rows, batch_size=BATCH)
        SigningSecret.objects.bulk_create(
            (SigningSecret(subscription=row) for row in made), batch_size=BATCH
        )
