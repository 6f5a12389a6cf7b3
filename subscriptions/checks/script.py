"""Validation of scripts with the common scripts that they include."""

from subscriptions.models import CommonScript
from subscriptions.scripts.includes import Library, include_fault, inlined_script
from subscriptions.scripts.jobs import MAX_SCRIPT_LENGTH, ScriptFault
from subscriptions.scripts.pool import pool
from subscriptions.values.refusals import Place, Refusal


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


def fault_refusal(fault: ScriptFault) -> Refusal:
    """Return the reason to refuse a script; a fault in an included script has no place in it."""
    has_place = fault.line is not None and not fault.source
    return Refusal(str(fault), Place(fault.line or 1, fault.column or 1) if has_place else None)
