"""Explanations for people: whether each subscription qualifies for a message, and why or not."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter

from django.db.models import QuerySet

from subscriptions.filters import Document
from subscriptions.matching.destinations import EVERYBODY, Destination
from subscriptions.matching.match import Mismatch, find_mismatch
from subscriptions.models import (
    EventType,
    JoinMode,
    Kind,
    MatchMode,
    Subscription,
    SubscriptionStatus,
)


@dataclass(frozen=True, slots=True)
class Explanation:
    """Whether a subscription qualifies for a message today, and the reason.

    The reason is a sentence, or a mismatch, which has one.
    """

    subscription: Subscription
    qualifies: bool
    reason: str | Mismatch


def explain_matches(
    event_type: EventType, document: Document, *, to: Destination | None = EVERYBODY
) -> list[Explanation]:
    """Return for every subscription of the event type whether it qualifies, and why or why not.

    `to` is None if the message was for a destination no longer there.
    """
    subscriptions = subscriptions_of(event_type).select_related("policy", "event_type")
    return explain_each(event_type, subscriptions, document, to=to)


def subscriptions_of(event_type: EventType) -> QuerySet[Subscription]:
    """Return the subscriptions in the order of their explanations."""
    rows = Subscription.objects.filter(event_type=event_type).select_related("subscriber")
    return rows.order_by("subscriber__name", "position", "id")


def explain_each(
    event_type: EventType,
    subscriptions: Iterable[Subscription],
    document: Document,
    *,
    to: Destination | None = EVERYBODY,
) -> list[Explanation]:
    """Return the result of `explain_matches` for all subscriptions of the event type, given.

    They may be those of another time: see `subscriptions.matching.past_subscriptions`.
    """
    explanations = _explanations(event_type, subscriptions, document, to=to)
    return _with_first_only(explanations) if event_type.kind == Kind.SYNC else explanations


def why_not_there(to: Destination, document: Document) -> str:
    """Return why the destination subscription of a message does not qualify.

    Empty if the destination is a whole subscriber, or if the subscription was changed or deleted
    since the message was matched. The value of a header is left out.
    """
    if to.subscription_id is None:
        return ""
    rows = Subscription.objects.filter(pk=to.subscription_id)
    found = rows.select_related("subscriber", "event_type").first()
    reason = (
        None
        if found is None
        else _reason(found, document, kind=found.event_type.kind, is_served=False)
    )
    return str(masked(reason or ""))


def masked(reason: str | Mismatch) -> str | Mismatch:
    """Return the reason without values of headers, for people who may not see payloads."""
    return reason.masked() if isinstance(reason, Mismatch) else reason


def _explanations(
    event_type: EventType,
    subscriptions: Iterable[Subscription],
    document: Document,
    *,
    to: Destination | None,
) -> list[Explanation]:
    explanations: list[Explanation] = []
    served: set[int] = set()
    recorded: set[int] = set()
    ordered = list(subscriptions)
    for subscription in sorted(ordered, key=attrgetter("takes_unmatched")):
        is_shadow = subscription.status == SubscriptionStatus.SHADOW
        taken = served | recorded if is_shadow else served
        is_addressed = to is not None and to.includes(subscription.subscriber_id, subscription.pk)
        reason = _reason(
            subscription,
            document,
            kind=event_type.kind,
            is_served=subscription.subscriber_id in taken,
        )
        if not is_addressed:
            reason = "the message was delivered to another destination"
        elif reason is None and subscription.takes_unmatched:
            reason = _reason_matched(explanations, counts_shadow=is_shadow)
        is_first_only = subscription.subscriber.match_mode == MatchMode.FIRST
        if reason is None and is_first_only and event_type.kind == Kind.TOPIC:
            (recorded if is_shadow else served).add(subscription.subscriber_id)
        explanations.append(
            Explanation(subscription, reason is None, reason or _qualifies(subscription))
        )
    places = {subscription.pk: place for place, subscription in enumerate(ordered)}
    return sorted(explanations, key=lambda explanation: places[explanation.subscription.pk])


def _reason_matched(explanations: Sequence[Explanation], *, counts_shadow: bool) -> str | None:
    """Return why a default destination does not get the message, by the facts about the others."""
    for explanation in explanations:
        other = explanation.subscription
        is_shadow = other.status == SubscriptionStatus.SHADOW
        if explanation.qualifies and not other.takes_unmatched and (counts_shadow or not is_shadow):
            return f"it is a default destination, and {other} matches"
    return None


def _with_first_only(explanations: list[Explanation]) -> list[Explanation]:
    """Keep only the first qualifying subscription, called by a SYNC message."""
    fitting = [explanation.subscription for explanation in explanations if explanation.qualifies]
    if not fitting:
        return explanations
    first = min(fitting, key=lambda subscription: (subscription.position, subscription.pk))
    return [
        _called_or_not(explanation, first) if explanation.qualifies else explanation
        for explanation in explanations
    ]


def _called_or_not(explanation: Explanation, first: Subscription) -> Explanation:
    if explanation.subscription.pk == first.pk:
        return replace(explanation, reason="it matches, and is the one that is called")
    reason = f"it matches, but {first} is first, and a SYNC message calls only one"
    return replace(explanation, qualifies=False, reason=reason)


def _qualifies(subscription: Subscription) -> str:
    if subscription.status == SubscriptionStatus.SHADOW:
        return "it matches, and is SHADOW: its delivery is recorded and not sent"
    if subscription.status == SubscriptionStatus.HELD:
        return "it matches, and is HELD: its delivery waits"
    if subscription.subscriber.status == SubscriptionStatus.HELD:
        return "it matches, and its subscriber is HELD: its delivery waits"
    if subscription.takes_unmatched:
        return "it matches as a default destination: no other subscription does"
    if subscription.join_mode == JoinMode.ALL:
        return (
            "it matches, and is sent together with the other messages of "
            f"its join {subscription.join_name}"
        )
    if subscription.join_mode == JoinMode.ONLY_ONE:
        return f"it matches, and is sent if it is the first of its join {subscription.join_name}"
    return "it matches"


def _reason(
    subscription: Subscription, document: Document, *, kind: str, is_served: bool
) -> str | Mismatch | None:
    if subscription.status == SubscriptionStatus.INACTIVE:
        return "it is INACTIVE"
    if subscription.subscriber.status == SubscriptionStatus.INACTIVE:
        return "its subscriber is INACTIVE"
    if subscription.status == SubscriptionStatus.SHADOW and kind == Kind.SYNC:
        return "it is SHADOW, and a SYNC message calls only ACTIVE ones"
    if is_served:
        return "an earlier subscription of this subscriber matches, and its match mode is FIRST"
    return find_mismatch(subscription.header_filter_string, subscription.filter, document)
