"""Conflicts between objects of a plan: each would be valid alone.

The objects are rows with the plan's values; others keep the row's.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from django.db.models import Model

from delivery.configuration.document.document import SUBSCRIBERS, SUBSCRIPTIONS, DocumentFault
from subscriptions.checks.sync_overlap import overlap_refusal
from subscriptions.models import Kind, Subscription

PlannedRow = tuple[Any, Mapping[str, Any]]


def conflicting_subscriptions(
    subscriptions: Iterable[PlannedRow], *, identity_of: Callable[[str], str]
) -> Iterator[DocumentFault]:
    """Yield a fault for each subscription that overlaps another one of its SYNC event type.

    See `subscriptions.checks.sync_overlap`.
    """
    first: dict[tuple[str, str, str], Subscription] = {}
    for row, values in subscriptions:
        if row.event_type.kind != Kind.SYNC:
            continue
        filter_string = values.get("header_filter_string", row.header_filter_string)
        filter_identity = identity_of(values.get("filter", row.filter))
        other = first.setdefault((row.event_type.name, filter_string, filter_identity), row)
        if other is not row:
            yield DocumentFault(
                object=f"{SUBSCRIPTIONS.noun} {row}", field="filter", detail=overlap_refusal(other)
            )


def shared_queue_ids(subscribers: Iterable[PlannedRow]) -> Iterator[DocumentFault]:
    """Yield a fault for each subscriber whose queue id another has."""
    first: dict[str, Model] = {}
    for row, values in subscribers:
        queue_id = values.get("queue_id", row.queue_id)
        if queue_id and (other := first.setdefault(queue_id, row)) is not row:
            detail = f"{other} has this queue id, too; give one of them another."
            label = f"{SUBSCRIBERS.noun} {row}"
            yield DocumentFault(object=label, field="queue_id", detail=detail)
