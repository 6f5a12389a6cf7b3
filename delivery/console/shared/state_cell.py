"""How a thing stands, as the cell of a list: the state, and below it the cause and its age."""

from datetime import datetime

from django.utils.safestring import SafeString

from delivery.console.shared.labels import label, two_lines
from delivery.standing.vocabulary import BY_A_PERSON, Cause, Holder, Standing, State
from subscriptions.values.times import largest_unit


def state_cell(standing: Standing, *, now: datetime) -> SafeString:
    shown, below = label(standing.state), _second_line(standing, now=now)
    return two_lines(shown, below) if below else shown


def _second_line(standing: Standing, *, now: datetime) -> str:
    since = f" for {largest_unit(now - standing.since)}" if standing.since else ""
    if standing.state in BY_A_PERSON:
        return f"{_decision(standing)}{since}".strip()
    if standing.cause not in (None, Cause.DOWN):
        return f"{standing.cause}{since}"
    if standing.state == State.DOWN:
        return since.strip()
    if standing.state == State.SLOW and standing.oldest_at:
        return f"oldest {largest_unit(now - standing.oldest_at)}"
    return ""


def _decision(standing: Standing) -> str:
    """Name the status if it is not the state's own, or the object if it is another one."""
    if standing.cause in (Cause.SHADOW, Cause.CANCELLING):
        return str(standing.cause)
    return "" if standing.holder == Holder.SUBSCRIPTION else f"the {standing.holder}"
