"""A plan in words, line by line, for the command and the console."""

from collections.abc import Iterator
from typing import Any

import orjson

from delivery.configuration.document.plan import Plan, PlannedField, PlannedObject, Verb
from delivery.configuration.effect import Effects
from subscriptions.values.counts import counted

SHOWN_CHARACTERS = 120


def plan_lines(plan: Plan) -> Iterator[str]:
    """Yield each changed object with the fields, kept secrets, then the counts by kind."""
    for change in plan.changes:
        yield f"{change.verb} {change.label}"
        yield from (f"    {field_line(change, field)}" for field in change.fields)
    for label, name, reference in plan.kept:
        yield f"note: {label}, {name}: {reference} has no value, so the secret stays as it is"
    yield plan_summary(plan)


def plan_summary(plan: Plan) -> str:
    return ", ".join(f"{plan.count(verb):,} {_PARTICIPLES[verb]}" for verb in Verb)


def field_line(change: PlannedObject, field: PlannedField) -> str:
    after = shown_value(field.shown_after)
    if change.verb == Verb.CREATE:
        return f"{field.name}: {after}"
    return f"{field.name}: {shown_value(field.shown_before)} → {after}{is_set_anew(field)}"


def is_set_anew(field: PlannedField) -> str:
    """Return a note about a changed secret, if the masked values look the same."""
    return " (set anew)" if field.shown_before == field.shown_after else ""


def shown_value(value: Any) -> str:
    text = value if isinstance(value, str) and value else orjson.dumps(value).decode()
    return text if len(text) <= SHOWN_CHARACTERS else text[:SHOWN_CHARACTERS] + "…"


_PARTICIPLES = {
    Verb.CREATE: "to create",
    Verb.CHANGE: "to change",
    Verb.DELETE: "to delete",
    Verb.UNCHANGED: "unchanged",
}


def effect_lines(effects: Effects) -> Iterator[str]:
    yield from (f"effect: {effect}" for effect in effects.effects)
    if effects.left_out:
        yield f"effect: not tried for {counted(effects.left_out, 'more subscription')}"
