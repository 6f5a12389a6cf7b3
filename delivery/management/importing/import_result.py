"""The result of an import from another system: a document, and a report in parts."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from delivery.configuration.document.document import FORMAT, NAMES, SECTIONS, DocumentEntry
from delivery.management.importing.unread import FieldRecord, SourceObject

_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9._-]+")
_NOT_IN_A_REFERENCE = re.compile(r"[^A-Z0-9]+")


class SourceError(ValueError):
    """The source is not an export of this system; the message describes the expected export."""


@dataclass(slots=True)
class Imported:
    """`secrets` are the values of the document's references; the document itself has no secrets."""

    entries: dict[str, dict[tuple[Any, ...], DocumentEntry]] = field(
        default_factory=lambda: {name: {} for name in NAMES}
    )
    taken: list[str] = field(default_factory=list)
    differently: list[str] = field(default_factory=list)
    impossible: list[str] = field(default_factory=list)
    secrets: dict[str, str] = field(default_factory=dict)
    references: set[str] = field(default_factory=set)
    fields: FieldRecord = field(default_factory=FieldRecord)

    def source_object(self, fields: Mapping[str, Any], *, noun: str) -> SourceObject:
        """Wrap an object of the source, to report fields read by nobody."""
        return SourceObject(fields, self.fields, noun=noun)

    def add(self, section_name: str, entry: DocumentEntry) -> bool:
        """Add an object; False if the name exists."""
        (section,) = [known for known in SECTIONS if known.name == section_name]
        key = section.key_of(entry)
        is_new = key not in self.entries[section_name]
        if is_new:
            self.entries[section_name][key] = entry
            self.taken.append(f"{section.noun} {'/'.join(key)}")
        return is_new

    def report_impossible(self, line: str) -> None:
        """Add a line to the part "impossible", once."""
        if line not in self.impossible:
            self.impossible.append(line)

    def reference(self, *parts: str) -> str:
        """Return the name of an environment variable for a secret; no two secrets have the same."""
        base = _NOT_IN_A_REFERENCE.sub("_", "_".join(parts).upper()).strip("_")
        numbered = (base if number == 1 else f"{base}_{number}" for number in count(1))
        name = next(name for name in numbered if name not in self.references)
        self.references.add(name)
        return name

    def name_of(self, text: str, *, what: str) -> str:
        """Return a valid name, and report it if it differs from the text."""
        name = _NOT_IN_A_NAME.sub("-", text.strip()).strip("-._")[:200]
        if not name:
            raise SourceError(f"A {what} has no name.")
        if name != text:
            line = (
                f"{what} {text!r} is {name}: names have letters, digits, dots, "
                "hyphens and underscores"
            )
            if line not in self.differently:
                self.differently.append(line)
        return name

    def shadow(self) -> None:
        """Make all subscriptions SHADOW but the INACTIVE, to compare them before they send."""
        for entry in self.entries["subscriptions"].values():
            if entry.get("status") != "INACTIVE":
                entry["status"] = "SHADOW"

    def document(self) -> dict[str, Any]:
        lists = {
            name: [entries[key] for key in sorted(entries)]
            for name, entries in self.entries.items()
            if entries
        }
        return {"format": FORMAT, **lists}

    def report(self, *, ignored: Collection[str] = ()) -> str:
        """Return the report; the part "Not read" is left out if all fields were read or ignored."""
        unread = self.fields.unread(ignored)
        parts = (
            ("Taken over", self.taken),
            ("Taken over differently", self.differently),
            ("Impossible", self.impossible),
            *([("Not read", unread)] if unread else []),
        )
        return "\n".join(
            line
            for title, lines in parts
            for line in (f"{title} ({len(lines)})", *(f"  {item}" for item in lines))
        )
