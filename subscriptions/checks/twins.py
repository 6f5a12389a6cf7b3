"""Two TOPIC subscriptions of a subscriber with the same messages, which it then gets twice.

This may be wanted, with two endpoints or scripts, so it is a warning; often it is a double click.
"""

from subscriptions.models import (
    JoinMode,
    Kind,
    MatchMode,
    Subscription,
    SubscriptionStatus,
)

_SENDING = (SubscriptionStatus.ACTIVE, SubscriptionStatus.HELD)


def twin_warning(row: Subscription) -> str:
    """Return the warning about a stored subscription; empty if it has no twin."""
    is_twice = (
        row.event_type.kind == Kind.TOPIC
        and row.subscriber.match_mode == MatchMode.ALL
        and row.join_mode == JoinMode.NONE
        and row.status in _SENDING
    )
    if not is_twice:
        return ""
    others = Subscription.objects.filter(
        subscriber=row.subscriber_id,
        event_type=row.event_type_id,
        header_filter_string=row.header_filter_string,
        filter_identity=row.filter_identity,
        takes_unmatched=row.takes_unmatched,
        join_mode=JoinMode.NONE,
        status__in=_SENDING,
    ).exclude(pk=row.pk)
    found = list(others.order_by("id").values_list("name", flat=True)[:5])
    if not found:
        return ""
    return (
        f"{row.subscriber} gets each of these messages more than once: {', '.join(found)} has the "
        f"same event type, filter and header string as {row.name}. Delete one of them, unless "
        "both are meant."
    )
