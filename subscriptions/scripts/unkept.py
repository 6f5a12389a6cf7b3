"""The values of a JSON text changed for a script: JavaScript's numbers have 53 bits.

`$inmessage` is the parsed body. Numbers are doubles, so longer numbers are rounded, and of equal
names in an object the last counts. `$intext` has the text.
"""

import json
import math
from collections import Counter
from decimal import Decimal
from typing import Any

MOST_SHOWN = 5
_LONGEST_SHOWN = 40


def unkept_values(body: bytes) -> list[str]:
    """Return a sentence for each value a script cannot keep, at most MOST_SHOWN."""
    found: dict[str, None] = {}

    def number(text: str) -> None:
        if is_changed(text):
            found[f"the number {_cut(text)} becomes {_as_script_has_it(text)}"] = None

    def members(pairs: list[tuple[str, Any]]) -> None:
        for name, count in Counter(name for name, _ in pairs).items():
            if count > 1:
                found[f"the name {_cut(name)!r} stands {count} times; the last one counts"] = None

    try:
        json.loads(body.decode(), parse_int=number, parse_float=number, object_pairs_hook=members)
    except (ValueError, RecursionError):
        return []
    return list(found)[:MOST_SHOWN]


def is_changed(text: str) -> bool:
    """Return whether JavaScript has another number than the text of a JSON number."""
    number = float(text)
    if math.isinf(number) or (not number and text.startswith("-")):
        return True
    return Decimal(repr(number)) != Decimal(text)


def _as_script_has_it(text: str) -> str:
    number = float(text)
    if math.isinf(number):
        return "Infinity, which JSON writes as null"
    if not number:
        return "0"
    return str(int(number)) if number.is_integer() and abs(number) < 1e21 else repr(number)


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"
