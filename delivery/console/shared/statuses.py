"""The deliveries of the messages of a list, counted by status."""

from collections.abc import Iterable

from django.db.models import Count
from django.utils.html import format_html_join
from django.utils.safestring import SafeString

from delivery.console.shared.labels import label
from delivery.models import Delivery

Statuses = list[tuple[str, int]]


def counted_statuses(message_ids: Iterable[int]) -> dict[int, Statuses]:
    """Return the counts of each message with deliveries, for as many as are on a page."""
    counted: dict[int, Statuses] = {}
    rows = Delivery.objects.of_messages(message_ids).values_list("message_id", "status")
    for message_id, status, count in rows.annotate(n=Count("id")).order_by():
        counted.setdefault(message_id, []).append((status, count))
    return {message_id: sorted(statuses) for message_id, statuses in counted.items()}


def status_labels(statuses: Statuses) -> SafeString | str:
    if not statuses:
        return "no subscription matched"
    texts = (
        (label(status, text=f"{count} {status}" if count > 1 else status),)
        for status, count in statuses
    )
    return format_html_join(" ", "{}", texts)
