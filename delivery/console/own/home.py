"""The first page of a publisher's developer: the outcomes of the newest messages, and the API."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.contrib.auth.models import AnonymousUser, User
from django.db.models import QuerySet

from delivery.console.event_types.catalogue import EventExample, example_of
from delivery.console.own.page import reading_commands
from delivery.console.shared.statuses import Statuses, counted_statuses
from delivery.database.queries import TimeUpError, statement_time_limit
from delivery.models import Delivery, Message
from delivery.models.delivery import delivery_id
from delivery.models.reach import deliveries_within, messages_within
from delivery.states import FAILURES
from subscriptions.models import EventType, Publisher
from subscriptions.reach import Reach, reach_of_user
from subscriptions.values.names import RESERVED_PREFIX

NEWEST = 8
FAILED = 10
# The search ends after this time: with few messages among many of others it would take longer.
FAILED_SECONDS = 2
FAILED_SINCE = timedelta(days=1)
EVENT_TYPES = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnHome:
    """`failed` is None if they were not found in time."""

    publishers: list[Publisher]
    newest: list[tuple[Message, Statuses]]
    failed: list[Delivery] | None
    examples: list[EventExample]
    more_event_types: bool
    reading: str


def read_own_home(user: User | AnonymousUser, *, now: datetime) -> OwnHome:
    reach = reach_of_user(user)
    publishers = list(Publisher.objects.filter(pk__in=reach.publishers).order_by("name"))
    event_types = list(_event_types(publishers)[: EVENT_TYPES + 1])
    newest = list(
        messages_within(Message.objects.all(), reach)
        .select_related("event_type", "publisher")
        .defer("body", "headers")
        .order_by("-id")[:NEWEST]
    )
    counted = counted_statuses(message.pk for message in newest)
    example = newest[0].public_id if newest else "msg_1"
    return OwnHome(
        publishers=publishers,
        newest=[(message, counted.get(message.pk, [])) for message in newest],
        failed=_failed(reach, since=now - FAILED_SINCE),
        examples=[example_of(event_type) for event_type in event_types[:EVENT_TYPES]],
        more_event_types=len(event_types) > EVENT_TYPES,
        reading=reading_commands(example),
    )


def _event_types(publishers: list[Publisher]) -> QuerySet[EventType]:
    rows = EventType.objects.exclude(name__startswith=RESERVED_PREFIX).order_by("name")
    if any(publisher.all_event_types for publisher in publishers):
        return rows
    return rows.filter(publisher__in=publishers).distinct()


def _failed(reach: Reach, *, since: datetime) -> list[Delivery] | None:
    """Return the newest failed deliveries of messages published since then."""
    try:
        with statement_time_limit(FAILED_SECONDS):
            # Of any publisher: the bound is found by the index of times.
            recent = Message.objects.filter(published_at__gte=since).order_by("published_at")
            first = recent.values_list("pk", flat=True).first()
            if first is None:
                return []
            rows = deliveries_within(Delivery.objects.all(), reach).filter(
                pk__gte=delivery_id(first, 0), status__in=FAILURES
            )
            rows = rows.select_related("message__event_type", "subscription__subscriber")
            return list(rows.defer("message__body", "message__headers").order_by("-id")[:FAILED])
    except TimeUpError:
        return None
