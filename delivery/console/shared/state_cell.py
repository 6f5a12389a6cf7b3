"""How a thing stands, as the cell of a list: the state, and below it the cause and its age."""

from collections.abc import Mapping
from datetime import datetime

from django.utils.safestring import SafeString

from delivery.console.shared.labels import label, two_lines
from delivery.standing.vocabulary import BY_A_PERSON, Cause, Holder, Standing, State
from subscriptions.values.times import largest_unit

# Where a person decided, as the row of a subscription or of a subscriber says it.
_OF_SUBSCRIPTION = {Holder.SUBSCRIBER: "its subscriber", Holder.INSTALLATION: "all sending"}
_OF_SUBSCRIBER = {Holder.SUBSCRIPTION: "its subscriptions", Holder.INSTALLATION: "all sending"}


def state_cell(
    standing: Standing, *, now: datetime, is_of_subscription: bool = False
) -> SafeString:
    holders = _OF_SUBSCRIPTION if is_of_subscription else _OF_SUBSCRIBER
    shown, below = label(standing.state), _second_line(standing, holders, now=now)
    return two_lines(shown, below) if below else shown


def _second_line(standing: Standing, holders: Mapping[Holder, str], *, now: datetime) -> str:
    since = f" for {largest_unit(now - standing.since)}" if standing.since else ""
    if standing.state in BY_A_PERSON:
        return f"{_decision(standing, holders)}{since}".strip()
    if standing.cause not in (None, Cause.DOWN):
        return f"{standing.cause}{since}"
    if standing.state == State.DOWN:
        return since.strip()
    if standing.state == State.SLOW and standing.oldest_at:
        return f"oldest {largest_unit(now - standing.oldest_at)}"
    return ""


def _decision(standing: Standing, holders: Mapping[Holder, str]) -> str:
    """Name the status if it is not the state's own, or the object if it is another one."""
    if standing.cause in (Cause.SHADOW, Cause.CANCELLING):
        return str(standing.cause)
    return holders.get(standing.holder, "") if standing.holder else ""
