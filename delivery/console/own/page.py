"""The page of a developer's own message: the deliveries, and why each was made or not.

As for a publish key it has the outcomes and status codes of attempts, but no answers and addresses
of receivers, and no names of people.
"""

from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.db.models import Count, Prefetch

from delivery.console.messages import curl
from delivery.console.messages.reasons import Reasons, reasons_of
from delivery.models import Attempt, Delivery, Message
from delivery.support.payload import Payload, payload_of

SHOWN_DELIVERIES = 100
SHOWN_ATTEMPTS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnPage:
    """`body` and `publishing` are missing without the right to see payloads.

    `attempts` of a delivery are the newest.
    """

    message: Message
    deliveries: list[Delivery]
    statuses: list[tuple[str, int]]
    reasons: Reasons
    headers: list[tuple[str, Any]]
    body: Payload | None
    publishing: str
    reading: str

    @property
    def total(self) -> int:
        return sum(count for _, count in self.statuses)


def read_own_page(message: Message, *, may_see: bool) -> OwnPage:
    of_message = Delivery.objects.of_message(message.pk)
    counted = of_message.order_by().values_list("status").annotate(n=Count("id"))
    newest = Prefetch("history", Attempt.objects.newest(SHOWN_ATTEMPTS))
    rows = of_message.select_related("subscription__subscriber").prefetch_related(newest)
    rows = rows.defer("subscription__headers", "subscription__auth").order_by("id")
    return OwnPage(
        message=message,
        deliveries=list(rows[:SHOWN_DELIVERIES]),
        statuses=sorted(counted),
        reasons=reasons_of(message, may_see=may_see),
        headers=sorted(message.headers.items()),
        body=payload_of(bytes(message.body)) if may_see else None,
        publishing=curl.publish_command(message) if may_see else "",
        reading=reading_commands(message.public_id),
    )


def reading_commands(message: str) -> str:
    """Return commands to read a message, the deliveries and why each was made or not."""
    base = f"{settings.ENVIRONMENT.base_url}/api/v1"
    key = 'curl -H "Authorization: Bearer $PUBLISHER_KEY" '
    return "\n".join(
        f"{key}'{base}/{path}'"
        for path in (
            f"messages/{message}",
            f"deliveries?message={message}",
            f"messages/{message}/explain",
        )
    )
