"""A query of the search field as the addresses of the lists able to show it."""

from collections.abc import Mapping
from urllib.parse import urlencode

from django.contrib.auth.models import User
from django.db.models import Model

from delivery.console.omnibox.hits import OmniboxHit, list_address, may_view
from delivery.console.omnibox.query import Query, QueryError
from delivery.console.shared.parameters import TAB
from delivery.models import Delivery, JournalEntry, Message
from delivery.support.payload import may_see_payload
from subscriptions.matching.typed_names import UnknownNameError, object_id, subscription_ids
from subscriptions.models import EventType, Publisher, Subscriber, Subscription
from subscriptions.reach import reach_of_names

_TIMES = {"since", "until"}
_OF_DELIVERIES = {"status", TAB, "subscriber", "subscription", "event_type", "message"} | _TIMES
_OF_MESSAGES = _OF_DELIVERIES | {"publisher", "header", "body"}
_OF_JOURNAL = {"subscription", "message"} | _TIMES
_TEXTS = {"header", "body"}
_NAMED: Mapping[str, type[Model]] = {
    "subscriber": Subscriber,
    "event_type": EventType,
    "publisher": Publisher,
}


def lists_of(query: Query, user: User) -> list[OmniboxHit]:
    """Return the lists with all conditions of the query, the most fitting first.

    Raise QueryError for words without a key, for unknown names, and if no list has all conditions.
    """
    if query.words:
        raise QueryError(
            f"Write a key before {query.words!r}, such as body:{_quoted(query.words)} or "
            f"subscription:{_quoted(query.words)}."
        )
    names = query.parameters.keys()
    if names & _TEXTS and not may_see_payload(user):
        raise QueryError("You may not see payloads, so you cannot search in headers and bodies.")
    offered = [
        (Delivery, "Deliveries", names <= _OF_DELIVERIES),
        (Message, "Messages", names <= _OF_MESSAGES),
        (JournalEntry, "Journal", names <= _OF_JOURNAL),
    ]
    hits = [
        OmniboxHit(title, query_in_words(query), _address(model, query.parameters))
        for model, title, has_all in offered
        if has_all and may_view(user, model)
    ]
    if not hits:
        raise QueryError("No list that you may see has all of these filters.")
    # After the rights: a suggestion has the name of an object.
    _check_names(query.parameters, user)
    return hits


def query_in_words(query: Query) -> str:
    """Return the conditions as the chips above the list show them."""
    return " · ".join(
        f"{'status' if name == TAB else name.replace('_', ' ')} {value}"
        for name, value in query.parameters.items()
    )


def _address(model: type[Model], parameters: Mapping[str, str]) -> str:
    shown = dict(parameters)
    if model is Message and "message" in shown:
        # The list of messages finds them by the search.
        shown["q"] = shown.pop("message")
    return f"{list_address(model)}?{urlencode(shown)}"


def _check_names(parameters: Mapping[str, str], user: User) -> None:
    try:
        for name, model in _NAMED.items():
            if name in parameters:
                object_id(model, parameters[name], reach=reach_of_names(user, model))
        if "subscription" in parameters:
            reach = reach_of_names(user, Subscription)
            subscription_ids(parameters["subscription"], reach=reach)
    except UnknownNameError as error:
        raise QueryError(error.detail) from None


def _quoted(text: str) -> str:
    return f'"{text}"' if " " in text else text
