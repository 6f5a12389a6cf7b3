"""Validation of scripts and of fields combined with them, for the API and the console."""

from collections.abc import Mapping
from typing import Any

from subscriptions.models import CommonScript, EventType, Kind
from subscriptions.scripts.includes import Library, include_fault, inlined_script
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

    `own` is the name of a common script.
    """
    if not text:
        return None
    if len(text.encode(errors="replace")) > MAX_SCRIPT_LENGTH:
        return ScriptFault(text=f"it has more than {MAX_SCRIPT_LENGTH} bytes; write a shorter one")
    common = library() if common is None else common
    if refused := include_fault(text, common, own=own):
        return refused
    # A common script is checked without those run first: it may be one of them.
    return pool().check(inlined_script(text, Library(common.texts) if own else common))


def script_refusals(values: Mapping[str, Any], *, event_type: EventType) -> dict[str, str]:
    """Return field → reason for contradictions of `endpoint` and `script`.

    Empty if there are none.
    """
    endpoint, script = values["endpoint"], values["script"]
    if endpoint == INTERNAL and event_type.kind != Kind.SYNC:
        return {
            "endpoint": f"{INTERNAL} is for SYNC, where a script answers; "
            f"{event_type} is of kind {event_type.kind}."
        }
    if endpoint == INTERNAL and not script:
        return {"script": f"With the endpoint {INTERNAL} a script makes the answer; give one."}
    if script and event_type.kind == Kind.QUEUE:
        return {
            "script": f"{event_type} is of kind QUEUE, where the endpoints of a group take the "
            "same message; leave it out."
        }
    if script and event_type.kind == Kind.SYNC and endpoint != INTERNAL:
        return {
            "script": f"The endpoint answers; give the endpoint {INTERNAL} for the script to, "
            "or leave it out."
        }
    return {}
