"""The demo's configuration: provisioned once, and reused at every later start."""

from dataclasses import dataclass
from datetime import UTC, datetime
from random import Random
from typing import Any, TypeVar
from urllib.parse import urlsplit

from django.db import transaction
from django.forms import model_to_dict

from delivery.management.demo.artifacts import BUILD, CREATE, MOVE, UPDATE, WEIGHTS, Artifacts
from delivery.management.demo.receivers import HOST, Ports
from subscriptions import changes
from subscriptions.models import (
    EventType,
    Kind,
    Mode,
    Policy,
    Publisher,
    SigningSecret,
    Subscriber,
    Subscription,
)
from subscriptions.models.named_object import Named

ACTOR = "demo"
PUBLISHER = "demo-teamforge"
EVENT_TYPES = {
    CREATE: "An artifact was created in a tracker.",
    UPDATE: "An artifact was changed: original is the state before, updated after.",
    MOVE: "An artifact was moved to another project.",
    BUILD: (
        "An artifact is to be built: a job for one worker, "
        "which answers by callback when it is done."
    ),
}
QUEUES = {BUILD}
READER = "demo-warehouse"
SUBSCRIBERS = {
    "demo-reporting": "Behaves: answers 200 to everything.",
    "demo-crm": (
        "Answers 500 now and then. Its policy skips such a message and sends it again later."
    ),
    "demo-billing": (
        "The endpoint of invoices is down and its policy is strict, so all of it is blocked. "
        "Hold or deactivate invoices, and contracts flows."
    ),
    "demo-search": (
        "Answers 503 every third time. "
        "Its policy hands such a message to the retry lane, and the others flow."
    ),
    "demo-builds": (
        "Three workers share the jobs, of whom one is down: the other two do its share, "
        "and report by callback when a build is done."
    ),
    READER: (
        "Has a mailbox and reads it slowly: three messages at a time. "
        "Now and then it rejects a message, or does not acknowledge it, so that it returns."
    ),
}
RETRIES = "demo-retries"
# The policy to copy, with a wait short enough to watch.
RETRIES_LIKE = "workfront-2017"
RETRY_SECONDS = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoSubscription:
    """A subscription of the demo."""

    subscriber: str
    name: str
    event_type: str
    policy: str = "teamforge"
    header_filter_string: str = ""
    filter: str = ""
    is_down: bool = False
    mode: Mode = Mode.PUSH
    max_receives: int | None = None

    @property
    def path(self) -> str:
        return f"/{self.subscriber.removeprefix('demo-')}/{self.name}"

    def endpoint(self, ports: Ports) -> str:
        if self.mode == Mode.PULL:
            return ""
        return f"http://{HOST}:{ports.refusing if self.is_down else ports.answering}{self.path}"


SUBSCRIPTIONS = (
    DemoSubscription(subscriber="demo-reporting", name="all-created", event_type=CREATE),
    DemoSubscription(
        subscriber="demo-reporting",
        name="two-projects",
        event_type=UPDATE,
        filter="$$->'Body'->'original'->'project'->>'id' in ('proj1008','proj1010')",
    ),
    DemoSubscription(subscriber="demo-crm", name="cases", event_type=CREATE),
    DemoSubscription(
        subscriber="demo-crm", name="mobile-moves", event_type=MOVE, header_filter_string="proj1009"
    ),
    DemoSubscription(
        subscriber="demo-billing", name="invoices", event_type=CREATE, policy="strict", is_down=True
    ),
    DemoSubscription(
        subscriber="demo-billing", name="contracts", event_type=UPDATE, policy="strict"
    ),
    DemoSubscription(subscriber="demo-search", name="index", event_type=UPDATE, policy=RETRIES),
    DemoSubscription(subscriber="demo-builds", name="worker-1", event_type=BUILD),
    DemoSubscription(subscriber="demo-builds", name="worker-2", event_type=BUILD),
    DemoSubscription(subscriber="demo-builds", name="worker-3", event_type=BUILD, is_down=True),
    DemoSubscription(
        subscriber=READER, name="goods-in", event_type=CREATE, mode=Mode.PULL, max_receives=5
    ),
    DemoSubscription(subscriber=READER, name="relocations", event_type=MOVE, mode=Mode.PULL),
)


@dataclass(frozen=True, slots=True)
class DemoObjects:
    publisher: Publisher
    event_types: dict[str, EventType]


@transaction.atomic
def provision_demo(ports: Ports) -> DemoObjects:
    """Create missing objects, and update endpoints whose port was not available again.

    A person's changes since then stay.
    """
    samples = _samples()
    event_types = {
        name: _get_or_create(
            EventType, name, kind=_kind(name), description=description, sample=samples[name]
        )
        for name, description in EVENT_TYPES.items()
    }
    publisher = _get_or_create(
        Publisher, PUBLISHER, description="Publishes the demo's trickle of messages."
    )
    _ensure_retries()
    subscribers = {
        name: _get_or_create(Subscriber, name, description=text)
        for name, text in SUBSCRIBERS.items()
    }
    for selection in SUBSCRIPTIONS:
        _subscribe(
            selection, subscribers[selection.subscriber], event_types[selection.event_type], ports
        )
    return DemoObjects(publisher, event_types)


_Row = TypeVar("_Row", bound=Named)


def _get_or_create(model: type[_Row], name: str, **fields: Any) -> _Row:
    row, is_new = model._default_manager.get_or_create(name=name, defaults=fields)
    if is_new:
        _record("created", row)
    return row


def _kind(event_type: str) -> Kind:
    return Kind.QUEUE if event_type in QUEUES else Kind.TOPIC


def _ensure_retries() -> None:
    values = model_to_dict(
        Policy.objects.get(name=RETRIES_LIKE), exclude=["id", "name", "description"]
    )
    text = f"A copy of {RETRIES_LIKE} that tries again after {RETRY_SECONDS:g} s."
    _get_or_create(
        Policy, RETRIES, **values | {"retry_seconds": RETRY_SECONDS, "description": text}
    )


def _subscribe(
    selection: DemoSubscription, subscriber: Subscriber, event_type: EventType, ports: Ports
) -> None:
    wanted = {
        "event_type": event_type,
        "policy": Policy.objects.get(name=selection.policy),
        "mode": selection.mode,
        "endpoint": selection.endpoint(ports),
        "max_receives": selection.max_receives,
        "header_filter_string": selection.header_filter_string,
        "filter": selection.filter,
    }
    subscription, is_new = Subscription.objects.get_or_create(
        subscriber=subscriber, name=selection.name, defaults=wanted
    )
    if is_new:
        if selection.mode == Mode.PUSH:
            SigningSecret.objects.create(subscription=subscription)
        _record("created", subscription)
    elif _has_old_port(subscription, selection, ports):
        before = changes.snapshot(subscription)
        subscription.endpoint = selection.endpoint(ports)
        subscription.save(update_fields=["endpoint", "updated_at"])
        _record("changed", subscription, before=before)


def _has_old_port(subscription: Subscription, selection: DemoSubscription, ports: Ports) -> bool:
    endpoint = urlsplit(subscription.endpoint)
    is_ours = endpoint.hostname == HOST and endpoint.path == selection.path
    return is_ours and endpoint.port not in (ports.answering, ports.refusing)


def _record(
    action: str, row: Named | Subscription, *, before: dict[str, Any] | None = None
) -> None:
    # This also notifies the senders: see `delivery.lifecycle.signals`.
    changes.record_change(
        actor=ACTOR, action=action, instance=row, before=before, after=changes.snapshot(row)
    )


def _samples() -> dict[str, dict[str, Any]]:
    """Return a message of each event type, the same at every start."""
    artifacts = Artifacts(Random(1008))
    made = [artifacts.happen(now=datetime(2026, 1, 5, 9, 30, tzinfo=UTC)) for _ in WEIGHTS]
    return {happening.event: happening.body for happening in made}
