"""Validation of scripts and of the fields that they combine with, for the API and the console."""

from collections.abc import Collection, Mapping
from typing import Any

from django.db.models import Model

from subscriptions.models import CommonScript, EventType, Kind, Subscription
from subscriptions.scripts.includes import Library, include_fault, included, inlined
from subscriptions.scripts.jobs import MAX_SCRIPT_LENGTH, ScriptFault
from subscriptions.scripts.pool import pool
from subscriptions.values.endpoints import INTERNAL


def library() -> Library:
    """Return the common scripts as they are stored."""
    rows = list(CommonScript.objects.values_list("name", "text", "runs_first"))
    return Library(
        {name: text for name, text, _ in rows},
        first=tuple(name for name, _, runs_first in rows if runs_first),
    )


def fault(text: str, *, common: Library | None = None, own: str = "") -> ScriptFault | None:
    """Return the fault of a script, with line and column; None if it is valid or empty.

    `own` is its name if it is a common script.
    """
    if not text:
        return None
    if len(text.encode(errors="replace")) > MAX_SCRIPT_LENGTH:
        return ScriptFault(text=f"it has more than {MAX_SCRIPT_LENGTH} bytes; write a shorter one")
    common = library() if common is None else common
    if refused := include_fault(text, common, own=own):
        return refused
    # A common script is checked without those that run first: it may be one.
    return pool().check(inlined(text, Library(common.texts) if own else common))


def name_refusal(row: CommonScript, name: str) -> str:
    """Return why a stored common script cannot get this name; empty if it can."""
    if row._state.adding or name == row.name or not (found := includers(row.name)):
        return ""
    return f"{' and '.join(found).capitalize()} include it as {row.name}; create another one instead."


def includers(name: str, *, apart_from: Collection[type[Model]] = ()) -> list[str]:
    """Return the plurals of the objects that include a common script, and so need its name."""
    mark = f"$include${name}"
    texts = {
        Subscription: Subscription.objects.filter(script__contains=mark).values_list("script", flat=True),
        CommonScript: CommonScript.objects.filter(text__contains=mark).values_list("text", flat=True),
    }
    return [
        str(model._meta.verbose_name_plural)
        for model, rows in texts.items()
        if model not in apart_from
        and any(name == found for text in rows.iterator() for found, _ in included(text))
    ]


def refusals(values: Mapping[str, Any], *, event_type: EventType) -> dict[str, str]:
    """Return field → reason for contradictions of `endpoint` and `script`.

    Empty if there are none.
    """
    endpoint, script = values["endpoint"], values["script"]
    if endpoint == INTERNAL and event_type.kind != Kind.SYNC:
        return {
            "endpoint": f"{INTERNAL} is for SYNC, where a script answers; {event_type} is of kind {event_type.kind}."
        }
    if endpoint == INTERNAL and not script:
        return {"script": f"With the endpoint {INTERNAL} a script makes the answer; give one."}
    if script and event_type.kind == Kind.QUEUE:
        return {
            "script": f"{event_type} is of kind QUEUE, where the endpoints of a group take the same message; leave it out."
        }
    if script and event_type.kind == Kind.SYNC and endpoint != INTERNAL:
        return {
            "script": f"The endpoint answers; give the endpoint {INTERNAL} for the script to, or leave it out."
        }
    return {}
