"""Joins of a webMethods condition with several document types: All (AND) and Only one (XOR).

The time-out's name and unit are not in the public documents of `pub.trigger:createTrigger`:
`joinTimeOut` or `joinTimeout`, in milliseconds like all others, with a day as the administration
page has it. A join that never expires has the longest time here.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from delivery.management.importing.import_result import Imported, SourceError
from delivery.management.importing.webmethods_filters import CannotTranslateError, translated_filter

MODES = {"AND": "ALL", "ALL": "ALL", "XOR": "ONLY_ONE", "ONLY ONE": "ONLY_ONE"}
DAY_MS, LONGEST_SECONDS = 86_400_000, 31 * 86_400
_BECOMES = {
    "ALL": "one request with all of them, JSON with the list messages",
    "ONLY_ONE": "a request for the first; the others with its activation id are REDUNDANT",
}


def join_of(
    imported: Imported,
    condition: Mapping[str, Any],
    join: str,
    *,
    pairs: Iterable[tuple[str, str]],
    label: str,
) -> dict[str, Any] | None:
    """Return the common fields of the condition's subscriptions; None, reported, if impossible."""
    types = ", ".join(document_type for document_type, _ in pairs)
    if join not in MODES:
        imported.impossible.append(
            f"{label}: the join {join} of {types} is unknown; use AND, OR or XOR"
        )
        return None
    for _, text in pairs:
        try:
            translated_filter(text) if text.strip() else ""
        except CannotTranslateError as error:
            # Without any part the join would be another join.
            imported.impossible.append(
                f"{label}: the join {join} of {types}, for the filter {text} ({error})"
            )
            return None
    seconds, limits = (
        _seconds(condition, label),
        "it never expires there, " if _is_endless(condition) else "",
    )
    mode = MODES[join]
    imported.differently.append(
        f"{label}: the join {join} of {types} is {_BECOMES[mode]}; {limits}it expires after "
        f"{seconds:,} s. Publish with the envelope's activation as the header Activation"
    )
    name = label.rpartition("condition ")[2]
    return {
        "join_mode": mode,
        "join_name": imported.name_of(name, what="join"),
        "join_seconds": seconds,
    }


def _is_endless(condition: Mapping[str, Any]) -> bool:
    return str(condition.get("joinExpires", "true")).strip().lower() in ("false", "0", "no")


def _seconds(condition: Mapping[str, Any], label: str) -> int:
    if _is_endless(condition):
        return LONGEST_SECONDS
    found = condition.get("joinTimeOut", condition.get("joinTimeout"))
    try:
        milliseconds = int(str(found)) if found not in (None, "") else DAY_MS
    except ValueError:
        raise SourceError(f"{label}: joinTimeOut is no whole number: {str(found)[:50]}.") from None
    return min(max(milliseconds // 1000, 1), LONGEST_SECONDS)
