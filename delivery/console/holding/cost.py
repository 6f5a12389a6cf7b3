"""The cost of making a subscription or subscriber INACTIVE: the messages of the last day."""

from collections.abc import Collection, Sequence
from typing import Any

from django.db import DatabaseError

from delivery.database.queries import TimeUpError, named_rows, statement_time_limit
from subscriptions.models import Subscriber, Subscription

# At most this many waiting deliveries are counted per lane and mailbox.
LIMIT = 1_000
# The time for the cost of many together.
SECONDS = 2.0
UNKNOWN_COST = "Messages published meanwhile will not be kept."


def cost_of_subscriptions(ids: Collection[int]) -> dict[int, str]:
    return _costs({"subscriptions": list(ids), "subscribers": []}, ids)


def cost_of_subscribers(ids: Collection[int]) -> dict[int, str]:
    """Return the cost of each subscriber, over all subscriptions."""
    return _costs({"subscriptions": [], "subscribers": list(ids)}, ids)


def cost_of_all(owners: Sequence[Subscription] | Sequence[Subscriber]) -> str:
    """Return the cost of all these subscriptions, or of all these subscribers, together.

    UNKNOWN_COST if it cannot be counted in a moment: they are INACTIVE already.
    """
    ids = [owner.pk for owner in owners]
    kind = "subscribers" if isinstance(owners[0], Subscriber) else "subscriptions"
    try:
        with statement_time_limit(SECONDS):
            rows = _messages_a_day({"subscriptions": [], "subscribers": [], kind: ids})
    except (TimeUpError, DatabaseError):
        return UNKNOWN_COST
    messages = sum(row["messages"] for row in rows)
    an_hour = sum(row["messages"] / row["hours"] for row in rows)
    return _cost_in_words(messages, messages / an_hour if messages else 24)


def _costs(parameters: dict[str, list[int]], ids: Collection[int]) -> dict[int, str]:
    rows = _messages_a_day(parameters) if ids else []
    costs = {row["owner_id"]: _cost_in_words(row["messages"], row["hours"]) for row in rows}
    return {id: costs.get(id, _cost_in_words(0, 24)) for id in ids}


def _messages_a_day(parameters: dict[str, list[int]]) -> list[dict[str, Any]]:
    return named_rows("messages_a_day", parameters | {"limit": LIMIT})


def _cost_in_words(messages: int, hours: float) -> str:
    """Return a sentence with the number of messages not to be kept."""
    if not messages:
        return "Messages published meanwhile will not be kept; none came in the last 24 hours."
    an_hour = round(messages / hours)
    if an_hour:
        return f"About {an_hour:,} message{'' if an_hour == 1 else 's'} an hour will not be kept."
    return f"About {messages:,} message{'' if messages == 1 else 's'} a day will not be kept."
