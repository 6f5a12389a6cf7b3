"""A lane for each window, the deliveries that wait there, and the window's statement."""

from typing import Any

from django.utils import timezone

from delivery.database.statements import statement
from delivery.models import Callback, Delivery, Lane, LaneKind
from delivery.senders.lanes import window
from delivery.senders.lanes.window import Window
from subscriptions.models import Kind, Subscription
from tests.support import factories
from tests.unit.delivery.senders.read_statements import (
    fetch,
    independent_parameters,
    run_parameters,
)

# The windows that differ in what they read, by name.
WINDOWS: dict[str, Window] = {
    "SERIAL": window.SERIAL,
    "CONCURRENT": window.CONCURRENT,
    "BY_PRIORITY": window.CONCURRENT_BY_PRIORITY,
    "QUEUE": window.QUEUE,
    "RETRY": window.RETRY,
    "CALLBACK": window.CALLBACK,
}
INDEPENDENT = [name for name, each in WINDOWS.items() if not each.records_ahead]


class WindowLane:
    """The lane of a window, and a subscription whose deliveries wait there."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.window = WINDOWS[name]
        self.is_of_subscriber = self.window.reports_blocked
        self.subscriber = factories.subscriber(
            processing="SERIAL" if name == "SERIAL" else "CONCURRENT",
            by_priority=name == "BY_PRIORITY",
        )
        self.subscription = self.subscribe()
        self.lane: Lane = (
            self.subscriber.lane
            if self.is_of_subscriber
            else Lane.objects.get(kind=LaneKind(name), number=0)
        )

    def subscribe(self, **fields: Any) -> Subscription:
        """Create another subscription whose deliveries may wait in the lane."""
        kind = Kind.QUEUE if self.name == "QUEUE" else Kind.TOPIC
        return factories.subscription(
            subscriber=self.subscriber, event_type=factories.event_type(kind=kind), **fields
        )

    def add(
        self,
        subscription: Subscription | None = None,
        *,
        content: bytes = b'{"number": 1}',
        headers: dict[str, str] | None = None,
        **fields: Any,
    ) -> Delivery:
        """Create a delivery that waits in the lane."""
        of = subscription or self.subscription
        message = factories.message(content, event_type=of.event_type, headers=headers or {})
        if self.name == "QUEUE":
            fields["queue_group"] = 0
        elif self.name == "CALLBACK":
            fields["callback"] = Callback.objects.create(
                message=factories.message(),
                queue_group=0,
                url="https://publisher.example/hook",
                answer=message,
                answered_at=timezone.now(),
                expires_at=timezone.now(),
            )
        return factories.delivery(subscription=of, message=message, lane=self.lane, **fields)

    def rows(self, *, in_memory: list[int] | None = None, **fields: Any) -> list[dict[str, Any]]:
        """Execute the window's statement."""
        held = in_memory or []
        if self.window.records_ahead:
            parameters = run_parameters(self.lane.pk)
            parameters["in_memory"] = ["{" + ",".join(map(str, held)) + "}"]
            if "bytes" in fields:
                fields["bytes"] = [fields["bytes"]]
        else:
            parameters = independent_parameters(self.lane.pk) | {"in_memory": held}
        return fetch(statement(self.window.statement), parameters | fields)

    def read(self, **fields: Any) -> list[int]:
        """Return the ids of the deliveries that the statement finds."""
        return [row["id"] for row in self.rows(**fields)]
