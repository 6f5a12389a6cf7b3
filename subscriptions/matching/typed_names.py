"""Configured objects by typed names; an unknown name is an error with a suggestion.

A subscription's name is unique only within the subscriber, so it may be typed as
`subscriber/subscription`, as every page shows it.

The answer to a caller with a limited reach is the same for a name of others as for an unknown name,
and suggests none.
"""

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

from django.db.models import F, Model, Q, Value
from django.db.models.functions import Concat

from subscriptions.models import Subscription
from subscriptions.reach import Reach
from subscriptions.values.names import MAX_NAME_LENGTH, is_name
from subscriptions.values.references import subscription_condition

LONGEST_SUBSCRIPTION = 2 * MAX_NAME_LENGTH + 1
# The comparison of so many names with the typed name takes some tens of milliseconds.
_COMPARED = 5_000
_CUTOFF = 0.6
_FULL_NAME = Concat(F("subscriber__name"), Value("/"), F("name"))


class UnknownNameError(Exception):
    """No object has the name; `detail` is a sentence for people, with the nearest name if any."""

    def __init__(self, detail: str) -> None:
        super().__init__(detail)
        self.detail = detail


def subscription_ids(text: str, *, reach: Reach | None) -> list[int]:
    """Return the ids of the subscriptions with this id, name, or `subscriber/subscription`.

    A number is always an id, and need not exist: the history names deleted subscriptions by it.
    Raise UnknownNameError for a name without a subscription. With a limited reach there are none of
    such a name instead; the caller restricts the rows of the others.
    """
    if reach == Reach():
        raise UnknownNameError(_hidden(Subscription))
    condition = subscription_condition(text, id="pk")
    if isinstance(number := condition.get("pk"), int):
        return [number]
    rows = Subscription.objects.filter(**condition).order_by()
    # Other texts are not sent to the database, which refuses some characters.
    ids = list(rows.values_list("pk", flat=True)) if all(map(is_name, text.split("/", 1))) else []
    if not ids and reach is None:
        raise UnknownNameError(_unknown("subscription", text, _nearest_subscription(text)))
    return ids


def object_id(model: type[Model], name: str, *, reach: Reach | None) -> int:
    """Return the id of the object with this name; raise UnknownNameError if there is none.

    With a limited reach every name is unknown.
    """
    if reach is not None:
        raise UnknownNameError(_hidden(model))
    rows = model._default_manager.order_by()
    found = rows.filter(Q(("name", name))).values_list("pk", flat=True)
    pk: int | None = found.first() if is_name(name) else None
    if pk is None:
        names = rows.values_list("name", flat=True)[:_COMPARED]
        raise UnknownNameError(_unknown(model._meta.verbose_name, name, nearest(name, names)))
    return pk


def names_to_suggest(model: type[Model], count: int, *, reach: Reach | None) -> list[str]:
    """Return the first names, to suggest them while typing: `subscriber/name` of subscriptions."""
    if reach is not None:
        return []
    if model is not Subscription:
        named = model._default_manager.order_by("name")
        return list(named.values_list("name", flat=True)[:count])
    rows = Subscription.objects.order_by("subscriber__name", "name")
    return list(rows.values_list(_FULL_NAME, flat=True)[:count])


def nearest(name: str, names: Iterable[str]) -> str:
    """Return the name most like the typed name, in any letter case; empty if none is."""
    folded = {known.casefold(): known for known in names}
    (found, *_) = [*get_close_matches(name.casefold(), folded, n=1, cutoff=_CUTOFF), ""]
    if not found:
        found = next((known for known in folded if name.casefold() in known), "")
    return folded.get(found, "")


def _nearest_subscription(text: str) -> str:
    rows = Subscription.objects.order_by()
    pairs = list(rows.values_list("subscriber__name", "name")[:_COMPARED])
    if "/" in text:
        return nearest(text, (f"{subscriber}/{name}" for subscriber, name in pairs))
    found = nearest(text, (name for _, name in pairs))
    return next((f"{subscriber}/{name}" for subscriber, name in pairs if name == found), "")


def _hidden(model: type[Model]) -> str:
    return (
        f"You may not see {model._meta.verbose_name_plural}, so you cannot search by their names."
    )


def _unknown(kind: Any, text: str, suggestion: str) -> str:
    hint = f" Did you mean {suggestion}?" if suggestion else ""
    return f"There is no {kind} {text!r}.{hint}"
