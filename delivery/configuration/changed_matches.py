"""Subscriptions with other matches by a plan, with their conditions before and after."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from delivery.configuration.document.document import SUBSCRIBERS, SUBSCRIPTIONS
from delivery.configuration.document.plan import Plan, PlannedObject, Verb
from subscriptions.models import EventType, Subscription, SubscriptionStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchCondition:
    """A subscription's own conditions for a message of the event type."""

    header_filter_string: str
    filter: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ConcernedSubscription:
    """A subscription with conditions `before` and `after`; None if no message matches.

    None: there is no such subscription, or it is INACTIVE. HELD makes no difference: messages match
    and are stored. A SHADOW subscription sends nothing: from SHADOW to ACTIVE all matches are
    deliveries more. A subscription still SHADOW, or created so, has the difference of the recorded
    matches. A default destination is left out: the messages are those without another matching
    subscription.
    """

    label: str
    event_type: EventType
    before: MatchCondition | None
    after: MatchCondition | None


def concerned_by(plan: Plan) -> list[ConcernedSubscription]:
    """Return the concerned subscriptions with stored event types.

    First those changed by the plan, in the plan's order; then those whose subscriber alone changes.
    """
    statuses = {
        change.name: str(change.values["status"])
        for change in plan.changes
        if change.section is SUBSCRIBERS
        and change.verb == Verb.CHANGE
        and "status" in change.values
    }
    planned = [change for change in plan.changes if change.section is SUBSCRIPTIONS]
    compared = [
        _planned(planned_object, statuses)
        for planned_object in planned
        if not _is_default_destination(planned_object)
    ]
    compared += _of_subscribers(planned, statuses)
    # A new event type has no messages.
    return [
        subscription
        for subscription in compared
        if subscription.before != subscription.after and not subscription.event_type._state.adding
    ]


def _planned(planned_object: PlannedObject, statuses: Mapping[str, str]) -> ConcernedSubscription:
    row = planned_object.row
    assert isinstance(row, Subscription)
    status = row.subscriber.status
    before = None if planned_object.verb == Verb.CREATE else _condition(row, {}, status)
    after = None
    if planned_object.verb != Verb.DELETE:
        after = _condition(row, planned_object.values, statuses.get(row.subscriber.name, status))
    if before is not None and after is not None:
        was_shadow, is_shadow = (
            status == SubscriptionStatus.SHADOW
            for status in (row.status, planned_object.values.get("status", row.status))
        )
        if was_shadow != is_shadow:
            before, after = (None, after) if was_shadow else (before, None)
    return ConcernedSubscription(
        label=planned_object.label, event_type=row.event_type, before=before, after=after
    )


def _is_default_destination(planned_object: PlannedObject) -> bool:
    assert isinstance(planned_object.row, Subscription)
    return planned_object.row.takes_unmatched or bool(planned_object.values.get("takes_unmatched"))


def _of_subscribers(
    planned: list[PlannedObject], statuses: Mapping[str, str]
) -> Iterator[ConcernedSubscription]:
    changed = {planned_object.row.pk for planned_object in planned}
    rows = Subscription.objects.filter(
        subscriber__name__in=statuses, takes_unmatched=False
    ).order_by("subscriber__name", "name")
    for row in rows.select_related("subscriber", "event_type"):
        if row.pk not in changed:
            yield ConcernedSubscription(
                label=f"{SUBSCRIPTIONS.noun} {row}",
                event_type=row.event_type,
                before=_condition(row, {}, row.subscriber.status),
                after=_condition(row, {}, statuses[row.subscriber.name]),
            )


def _condition(
    row: Subscription, values: Mapping[str, Any], subscriber_status: str
) -> MatchCondition | None:
    if SubscriptionStatus.INACTIVE in (
        values.get("status", row.status),
        subscriber_status,
    ):
        return None
    return MatchCondition(
        header_filter_string=values.get("header_filter_string", row.header_filter_string),
        filter=values.get("filter", row.filter),
    )
