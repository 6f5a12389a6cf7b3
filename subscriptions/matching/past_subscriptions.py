"""The subscriptions of an event type as they were at a moment, from the configuration log.

The log has the fields of a row before and after each change. So the rows of today, with the changes
since then undone from the newest to the oldest, are the rows of the moment. A change counts from
the time in the log, a little before the commit: of a message published in between, the log alone
does not show which configuration it met.
"""

import copy
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db.models import Q

from subscriptions.models import ConfigurationChange, EventType, Subscriber, Subscription

MOST_CHANGES = 500
# A rename leads to entries with the old name, which are looked up in turn.
_MOST_ROUNDS = 5
SUBSCRIPTION, SUBSCRIBER = "subscription", "subscriber"
_MATCHING = {
    SUBSCRIPTION: (
        "status",
        "header_filter_string",
        "filter",
        "takes_unmatched",
        "position",
        "join_mode",
        "join_name",
    ),
    SUBSCRIBER: ("status", "match_mode"),
}


class TooManyChangesError(Exception):
    """More than MOST_CHANGES changes since then: the past was not reconstructed."""


@dataclass(slots=True)
class PastSubscriptions:
    """`rows` are as they were, and not to be saved; those deleted since have negative ids.

    `changes` has the oldest change since then for each id, if any. `created` are the ids of today's
    rows which did not exist.
    """

    rows: list[Subscription] = field(default_factory=list)
    changes: dict[int, ConfigurationChange] = field(default_factory=dict)
    created: set[int] = field(default_factory=set)


def subscriptions_at(
    moment: datetime, event_type: EventType, today: Sequence[Subscription]
) -> PastSubscriptions:
    """Return the subscriptions of the event type; `today` are all present rows.

    Raises TooManyChangesError.
    """
    changes = changes_since(moment, event_type, today)
    if not changes:
        # The usual case: nothing has to be copied.
        rows = [row for row in today if row.created_at <= moment]
        return PastSubscriptions(rows, {}, {row.pk for row in today if row.created_at > moment})
    past = _Past(today)
    for change in changes:
        past.undo(change)
    return past.result(moment)


def changes_since(
    moment: datetime, event_type: EventType, today: Iterable[Subscription]
) -> list[ConfigurationChange]:
    """Return the changes of subscriptions and their subscribers, newest first.

    Raises TooManyChangesError.
    """
    names = {name for row in today for name in (str(row), row.subscriber.name)}
    found: list[ConfigurationChange] = []
    for _ in range(_MOST_ROUNDS):
        found = _changes_of(names, moment, event_type)
        if len(found) > MOST_CHANGES:
            raise TooManyChangesError
        if (more := {name for change in found for name in _names_in(change, names)}) <= names:
            break
        names |= more
    return found


def _changes_of(
    names: Iterable[str], moment: datetime, event_type: EventType
) -> list[ConfigurationChange]:
    named = Q(object_type__in=(SUBSCRIPTION, SUBSCRIBER), object_name__in=sorted(names))
    # Those of deleted subscriptions.
    of_type = Q(object_type=SUBSCRIPTION, action="deleted", before__event_type=event_type.name)
    rows = ConfigurationChange.objects.filter(named | of_type, at__gt=moment).order_by("-id")
    return list(rows[: MOST_CHANGES + 1])


def _names_in(change: ConfigurationChange, names: Iterable[str]) -> list[str]:
    """Return the names under which the log has more about the object of a change."""
    before, name = change.before or {}, change.object_name
    if change.object_type == SUBSCRIPTION:
        subscriber = name.partition("/")[0]
        return [name, subscriber, f"{subscriber}/{before['name']}"] if "name" in before else [name]
    if "name" not in before:
        return [name]
    of_it = [known for known in names if known.startswith(f"{name}/")]
    return [before["name"], *(before["name"] + known.removeprefix(name) for known in of_it)]


class _Past:
    """The rows by their names after the changes not undone yet."""

    def __init__(self, today: Iterable[Subscription]) -> None:
        self._subscriptions: dict[str, Subscription] = {}
        self._subscribers: dict[str, Subscriber] = {}
        self._gone: list[Subscription] = []
        self._changes: dict[int, ConfigurationChange] = {}
        self._created: set[int] = set()
        for row in today:
            owner = self._subscribers.setdefault(row.subscriber.name, copy.copy(row.subscriber))
            past = copy.copy(row)
            past.subscriber = owner
            self._subscriptions[str(row)] = past

    def undo(self, change: ConfigurationChange) -> None:
        rows: dict[str, Any] = (
            self._subscriptions if change.object_type == SUBSCRIPTION else self._subscribers
        )
        name = change.object_name
        if change.after is None and change.before is not None:
            self._restore(change)
        elif change.before is None:
            if change.object_type == SUBSCRIPTION and name in rows:
                self._created.add(rows.pop(name).pk)
        elif (row := rows.get(name)) is not None:
            self._undo(change, row)

    def _undo(self, change: ConfigurationChange, row: Any) -> None:
        before = change.before or {}
        changed = [name for name in _MATCHING[change.object_type] if name in before]
        for name in changed:
            setattr(row, name, before[name])
        if changed:
            self._note(change, row)
        if "name" in before:
            self._rename(change, row, before["name"])

    def _note(self, change: ConfigurationChange, row: Any) -> None:
        """Remember it as the oldest so far of the concerned subscriptions."""
        for subscription in self._subscriptions.values():
            if row is subscription or row is subscription.subscriber:
                self._changes[subscription.pk] = change

    def _rename(self, change: ConfigurationChange, row: Any, name: str) -> None:
        row.name = name
        if change.object_type == SUBSCRIBER:
            self._subscribers[name] = self._subscribers.pop(change.object_name)
        self._subscriptions = {
            str(subscription): subscription for subscription in self._subscriptions.values()
        }

    def _restore(self, change: ConfigurationChange) -> None:
        before, name = change.before or {}, change.object_name
        fields = {
            field: before[field] for field in _MATCHING[change.object_type] if field in before
        }
        if change.object_type == SUBSCRIBER:
            self._subscribers[name] = Subscriber(pk=-change.pk, name=name, **fields)
            return
        owner, _, own = name.partition("/")
        row = Subscription(pk=-change.pk, name=own, **fields)
        row.subscriber = self._subscribers.setdefault(owner, Subscriber(pk=-change.pk, name=owner))
        self._subscriptions[name] = row
        self._changes[row.pk] = change

    def result(self, moment: datetime) -> PastSubscriptions:
        for name, row in list(self._subscriptions.items()):
            # The log lacks rows imported with their database, or by a program.
            if row.pk > 0 and row.created_at > moment:
                self._created.add(self._subscriptions.pop(name).pk)
        rows = sorted(
            self._subscriptions.values(),
            key=lambda row: (row.subscriber.name, row.position, abs(row.pk)),
        )
        return PastSubscriptions(rows, self._changes, self._created)
