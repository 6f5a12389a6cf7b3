"""The page of a message: the trace, the deliveries with attempts, and why each was made or not."""

from dataclasses import dataclass
from typing import Any

import orjson
from django.db.models import Case, Count, IntegerField, Value, When
from django.utils import timezone

from delivery.console.messages import curl
from delivery.console.messages.branches import Branches, branches_of
from delivery.console.messages.reasons import Reasons, reasons_of
from delivery.console.messages.shown_deliveries import ShownDelivery, with_attempts
from delivery.console.messages.trace_events import Trace, Traced, build_trace
from delivery.console.messages.trace_rows import TraceRows, read_trace_rows
from delivery.console.payloads.difference import DifferenceLine, difference
from delivery.models import Delivery, Message
from delivery.models.delivery import DeliveryQuerySet
from delivery.publishing.joins import ACTIVATION
from delivery.states import FAILURES, OPEN, Status
from delivery.support.payload import Payload, payload_of
from subscriptions.matching.errors_to import FAILED

SHOWN_DELIVERIES = 20
SHOWN_ATTEMPTS = 10
# A page shows failures first, then waiting deliveries, then the others.
_RANK = Case(
    When(status__in=FAILURES, then=Value(0)),
    When(status__in=OPEN, attempts__gt=0, then=Value(1)),
    When(status__in=OPEN, then=Value(2)),
    When(status=Status.CANCELLED, then=Value(3)),
    default=Value(4),
    output_field=IntegerField(),
)
DELIVERY_RELATIONS = (
    "subscription__subscriber",
    "subscription__policy",
    "lane__subscriber",
    "callback",
    "replay",
    "script_output",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryPart:
    """The deliveries on the page, from `start`, counted from 0.

    `statuses` counts all deliveries of the message.
    """

    deliveries: list[ShownDelivery]
    start: int
    statuses: list[tuple[str, int]]

    @property
    def total(self) -> int:
        return sum(count for _, count in self.statuses)

    @property
    def first(self) -> int:
        return self.start + 1

    @property
    def last(self) -> int:
        return self.start + len(self.deliveries)

    @property
    def previous(self) -> int | None:
        return max(self.start - SHOWN_DELIVERIES, 0) if self.start else None

    @property
    def next(self) -> int | None:
        return self.last if self.last < self.total else None


@dataclass(frozen=True, slots=True, kw_only=True)
class MessagePage:
    """`change` is the difference from the message of which this is an edited copy.

    `joined` are the ids of the messages joined by this message, `reported` is the reported failure.
    """

    message: Message
    body: Payload
    headers: list[tuple[str, Any]]
    part: DeliveryPart
    trace: Trace
    reasons: Reasons
    branches: Branches
    copies: list[Message]
    joined: list[str]
    reported: str
    change: list[DifferenceLine] | None
    publishing: str

    @property
    def deliveries(self) -> list[ShownDelivery]:
        return self.part.deliveries

    @property
    def opens(self) -> bool:
        """Whether there are few enough deliveries to show the last failed request of each."""
        return self.part.total <= 3


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedPage:
    """The rows to load: the deliveries from `start` on, as far as the reader has a right to them.

    `may_see`: payloads. `explains_all` subscriptions, however many.
    """

    may_see: bool
    reads_journal: bool = True
    start: int = 0
    count: int = SHOWN_DELIVERIES
    attempts: int = SHOWN_ATTEMPTS
    explains_all: bool = False


def read_message_page(message: Message, wanted: WantedPage) -> MessagePage:
    """Load the whole page.

    Without the right to see payloads it has, of payloads, only the body and the values of headers,
    which the template leaves out.
    """
    may_see = wanted.may_see
    part = _part(message, wanted)
    deliveries = [shown.delivery for shown in part.deliveries]
    rows = read_trace_rows(
        message, deliveries, now=timezone.now(), reads_journal=wanted.reads_journal
    )
    branches = branches_of(message)
    body = payload_of(bytes(message.body))
    return MessagePage(
        message=message,
        body=body,
        headers=sorted(message.headers.items()),
        part=part,
        trace=trace_of(message, part.deliveries, rows, branches=branches),
        reasons=reasons_of(message, may_see=may_see, explains_all=wanted.explains_all),
        branches=branches,
        copies=[copy.message for copy in rows.copies],
        joined=_joined(message),
        reported=_reported(message),
        change=_change(message, body) if may_see else None,
        publishing=curl.publish_command(message) if may_see else "",
    )


def _part(message: Message, wanted: WantedPage) -> DeliveryPart:
    """Load a part of the deliveries, failures first, and count all of them by status."""
    of_message = Delivery.objects.of_message(message.pk)
    counted = of_message.order_by().values_list("status").annotate(n=Count("id"))
    statuses = sorted(counted)
    chosen = _deliveries(message, of_message, wanted)
    return DeliveryPart(
        deliveries=with_attempts(chosen, limit=wanted.attempts, may_see=wanted.may_see),
        start=wanted.start,
        statuses=statuses,
    )


def _deliveries(
    message: Message, of_message: DeliveryQuerySet, wanted: WantedPage
) -> list[Delivery]:
    # Only ids are sorted: thousands of whole rows with their relations would take much longer.
    ids = of_message.annotate(rank=_RANK).order_by("rank", "id").values_list("id", flat=True)
    chosen = list(ids[wanted.start : wanted.start + wanted.count])
    if not chosen:
        return []
    rows = Delivery.objects.filter(pk__in=chosen).select_related(*DELIVERY_RELATIONS).in_bulk()
    # Meanwhile a message may have been removed.
    deliveries = [rows[id] for id in chosen if id in rows]
    for delivery in deliveries:
        delivery.message = message
    return deliveries


def trace_of(
    message: Message,
    deliveries: list[ShownDelivery],
    rows: TraceRows,
    *,
    branches: Branches | None = None,
) -> Trace:
    of = [(shown.delivery, [item.attempt for item in shown.attempts]) for shown in deliveries]
    traced = Traced(message=message, deliveries=of, branches=branches or Branches())
    return build_trace(traced, rows)


def _change(message: Message, body: Payload) -> list[DifferenceLine] | None:
    if message.edited_from_id is None:
        return None
    # Retention may have removed the original.
    original = Message.objects.filter(pk=message.edited_from_id).only("body").first()
    return None if original is None else difference(payload_of(bytes(original.body)), body)


def _joined(message: Message) -> list[str]:
    """Return the public ids of the messages in a joined message."""
    parts = _own_content(message).get("messages") if ACTIVATION in message.headers else None
    return [str(part["id"]) for part in parts or []]


def _reported(message: Message) -> str:
    """Return the failure in a message of `Inturn.Delivery.Failed`, in words."""
    if message.event_type.name != FAILED:
        return ""
    content = _own_content(message)
    return f"delivery {content.get('delivery')} of {content.get('message')}"


def _own_content(message: Message) -> dict[str, Any]:
    """Return the body of a message published by Inturn itself; {} for any other."""
    if message.publisher_id is not None:
        return {}
    try:
        content = orjson.loads(bytes(message.body))
    except orjson.JSONDecodeError:
        return {}
    return content if isinstance(content, dict) else {}
