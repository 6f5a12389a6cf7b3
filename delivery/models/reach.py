"""The rows within a reach: the single rule about the readable rows of a limited key or developer.

Every list, page, export, search and answer for such a caller starts from these rows.
"""

from django.db.models import Q, QuerySet

from delivery.models.delivery import Delivery
from delivery.models.lane import Lane
from delivery.models.message import Message
from subscriptions.reach import Reach


def messages_within(rows: QuerySet[Message], reach: Reach | None) -> QuerySet[Message]:
    """Keep the publishers' messages; None keeps all."""
    return rows if reach is None else rows.filter(publisher_id__in=reach.publishers)


def deliveries_within(rows: QuerySet[Delivery], reach: Reach | None) -> QuerySet[Delivery]:
    """Keep the deliveries of the publishers' messages and those to the subscribers."""
    if reach is None:
        return rows
    # Nearly always either is empty; an OR of both would keep indexes from being used.
    of = Q(message__publisher_id__in=reach.publishers)
    to = Q(subscription__subscriber_id__in=reach.subscribers)
    if reach.publishers and reach.subscribers:
        return rows.filter(of | to)
    return rows.filter(of if reach.publishers else to)


def lanes_within(rows: QuerySet[Lane], reach: Reach | None) -> QuerySet[Lane]:
    """Keep the subscribers' own lanes; the lanes of queues, retries and callbacks are shared."""
    return rows if reach is None else rows.filter(subscriber_id__in=reach.subscribers)
