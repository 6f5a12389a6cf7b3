"""The difference between two bodies, line by line: the published and the sent."""

from collections.abc import Iterator
from dataclasses import dataclass
from difflib import unified_diff

from delivery.support.payload import Payload

# Comparing takes the longer the more lines differ.
MOST_LINES = 600
_CONTEXT = 3
_KINDS = {"-": "removed", "+": "added", "@": "gap"}


@dataclass(frozen=True, slots=True)
class DifferenceLine:
    """`kind` is `removed`, `added`, `same`, or `gap` for omitted equal lines."""

    kind: str
    text: str


def difference(before: Payload, after: Payload) -> list[DifferenceLine] | None:
    """Return the changed lines with their surroundings; [] if only the layout differs.

    JSON is compared indented. None if either is binary or cut, or has too many lines.
    """
    if any(payload.is_binary or payload.is_cut for payload in (before, after)):
        return None
    old, new = [(payload.pretty or payload.text).splitlines() for payload in (before, after)]
    if max(len(old), len(new)) > MOST_LINES:
        return None
    return list(_lines(unified_diff(old, new, n=_CONTEXT, lineterm="")))


def _lines(compared: Iterator[str]) -> Iterator[DifferenceLine]:
    # The first two lines name the files; the third has the place of the first lines.
    for number, line in enumerate(compared):
        kind = _KINDS.get(line[0], "same")
        if number < 2 or (kind == "gap" and line.startswith("@@ -1,")):
            continue
        yield DifferenceLine(kind, "…" if kind == "gap" else line[1:])
