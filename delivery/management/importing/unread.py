"""The fields of a source read by no importer.

A source's objects are wrapped as `SourceObject`, which remembers the names looked up by an
importer. A name counts as read for all objects of a kind, because an importer may need it for some
of them only. So a field spelled differently in this source, or missing in Inturn, is reported,
without a list of names beside the reading code.
"""

import difflib
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

_UNNAMED = "without a name"


@dataclass(slots=True)
class FieldRecord:
    """Counts values by noun and name, such as "column", "SubsFilter", and has the names read."""

    values: Counter[tuple[str, str]] = field(default_factory=Counter)
    read: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))

    def unread(self, ignored: Collection[str] = ()) -> list[str]:
        """Return a line for each name with an unread value."""
        return [
            f"{noun} {name or _UNNAMED}, {count} value{'' if count == 1 else 's'}"
            + self._advice(noun, name)
            for (noun, name), count in sorted(self.values.items())
            if count > 0 and name not in self.read[noun] and (name or _UNNAMED) not in ignored
        ]

    def _advice(self, noun: str, name: str) -> str:
        known = close_name(name, self.read[noun])
        return f"; did you mean {known}?" if known else ""


class SourceObject(Mapping[str, Any]):
    """An object or row of a source. Iteration over the items reads all of them."""

    def __init__(self, fields: Mapping[str, Any], record: FieldRecord, *, noun: str) -> None:
        self._fields = fields
        self._record = record
        self._noun = noun
        self._count(1)

    def __getitem__(self, name: str) -> Any:
        self._record.read[self._noun].add(name)
        return self._fields[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._fields)

    def __len__(self) -> int:
        return len(self._fields)

    def drop(self, *names: str) -> None:
        """Count fields as read without a meaning in Inturn, and no effect in their system."""
        self._record.read[self._noun].update(names)

    def leave_out(self) -> None:
        """Count no field: by the report already the whole object is not taken over."""
        self._count(-1)

    def _count(self, number: int) -> None:
        for name, value in self._fields.items():
            if _has_value(value):
                self._record.values[self._noun, name] += number


def close_name(name: str, known: Collection[str]) -> str:
    """Return the known name most likely meant by the name, or ""."""
    by_lower = {known_name.lower(): known_name for known_name in known}
    found = difflib.get_close_matches(name.lower(), list(by_lower), n=1)
    return by_lower[found[0]] if found else ""


def _has_value(value: Any) -> bool:
    return bool(value.strip()) if isinstance(value, str) else value not in (None, [], {})
