"""Warnings about a plan, which may be applied nevertheless."""

from collections import defaultdict

from django.db.models.functions import Lower

from delivery.configuration.document.document import EVENT_TYPES
from delivery.configuration.document.plan import Plan, Verb
from subscriptions.models import EventType

_MOST_NAMED = 3


def plan_warnings(plan: Plan) -> list[str]:
    """Return a warning for each group of similar names, and for files not read."""
    return [*_unread_files(plan), *_similar_names(plan)]


def _unread_files(plan: Plan) -> list[str]:
    if not plan.unread:
        return []
    names = ", ".join(plan.unread[:_MOST_NAMED]) + (" …" if len(plan.unread) > _MOST_NAMED else "")
    return [
        f"no file is read here, so the stored secrets stay ({names}): set INTURN_REFERENCE_FOLDER "
        "to the folder of these files, or give the values"
    ]


def _similar_names(plan: Plan) -> list[str]:
    """Return a warning for each group of names that differ only in case, if the plan creates one.

    They are names of event types.
    """
    named = {
        verb: {
            change.name
            for change in plan.changes
            if change.section is EVENT_TYPES and change.verb == verb
        }
        for verb in (Verb.CREATE, Verb.DELETE)
    }
    if not named[Verb.CREATE]:
        return []
    groups: dict[str, set[str]] = defaultdict(set)
    for name in named[Verb.CREATE]:
        groups[name.lower()].add(name)
    stored = EventType.objects.annotate(lower=Lower("name")).filter(lower__in=list(groups))
    for name in stored.exclude(name__in=named[Verb.DELETE]).values_list("name", flat=True):
        groups[name.lower()].add(name)
    return [_warning(names) for _, names in sorted(groups.items()) if len(names) > 1]


def _warning(names: set[str]) -> str:
    return (
        f"the event types {', '.join(sorted(names))} differ only in case, and are different event "
        "types: check that publishers and subscriptions use the one that is meant"
    )
