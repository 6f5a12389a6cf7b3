"""The trace of a message just published: accepted, matched, and each delivery until it is settled.

It refreshes itself while a delivery is open. It shows no payload.
"""

from dataclasses import dataclass

from django.shortcuts import get_object_or_404

from delivery.console.messages.page import DELIVERY_RELATIONS, trace_of
from delivery.console.messages.shown_deliveries import ShownDelivery, with_attempts
from delivery.console.messages.trace_events import Trace
from delivery.console.messages.trace_rows import TraceRows
from delivery.models import BuiltInReceiver, Delivery, Message
from delivery.receivers.stored_requests import receivers_at
from delivery.states import OPEN

TRACED_DELIVERIES = 20
_TRACED_ATTEMPTS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedDelivery:
    """A delivery, and the built-in receiver to which it is sent, if any."""

    shown: ShownDelivery
    receiver: BuiltInReceiver | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageTrace:
    """The first deliveries of a message; `is_open` while any of them is not settled."""

    message: Message
    deliveries: list[TracedDelivery]
    more_deliveries: bool
    trace: Trace

    @property
    def waiting(self) -> list[ShownDelivery]:
        """The unsettled deliveries."""
        return [traced.shown for traced in self.deliveries if traced.shown.delivery.status in OPEN]

    @property
    def is_open(self) -> bool:
        return bool(self.waiting)


def read_trace(message: Message) -> MessageTrace:
    """Load the trace in a number of statements independent of the deliveries."""
    deliveries = list(
        Delivery.objects.of_message(message.pk)
        .select_related(*DELIVERY_RELATIONS)
        .order_by("id")[: TRACED_DELIVERIES + 1]
    )
    for delivery in deliveries:
        delivery.message = message
    shown_deliveries = with_attempts(deliveries[:TRACED_DELIVERIES], limit=_TRACED_ATTEMPTS)
    receivers = receivers_at(delivery.subscription.endpoint for delivery in deliveries)
    return MessageTrace(
        message=message,
        deliveries=[
            TracedDelivery(
                shown=shown, receiver=receivers.get(shown.delivery.subscription.endpoint)
            )
            for shown in shown_deliveries
        ],
        more_deliveries=len(deliveries) > TRACED_DELIVERIES,
        trace=trace_of(message, shown_deliveries, TraceRows()),
    )


def traced_message(message_id: int) -> Message:
    """Return the message of a trace, without the body; raise Http404."""
    rows = Message.objects.select_related("event_type", "publisher").defer("body", "headers")
    return get_object_or_404(rows, pk=message_id)
