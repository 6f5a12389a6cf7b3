"""Secrets of a document, replaced by references, `{"from": "env:NAME"}` or `{"from": "file:PATH"}`.

The person who applies the document supplies the values: a command reads the environment and files;
REST and the console read the values sent along. A server never looks up somebody else's references
in the server's environment.

Another person may have written the document, such as the author of a merged change. So a command
reads no variable without the prefix in `INTURN_REFERENCE_PREFIX`, and no file outside of
`INTURN_REFERENCE_FOLDER`: the document could have any other sent to an endpoint.

A reference without a value keeps the stored secret, as does a file where no folder is configured;
if none is stored, the document is refused.
"""

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.conf import settings

from delivery.configuration.document.document import PUBLISH_ID, DocumentEntry, DocumentFault
from subscriptions.models import Subscriber, Subscription

# From a reference such as env:NAME to the value, or None.
Lookup = Callable[[str], str | None]

LONGEST_FILE = 64 * 1024
SECRET_PARTS = ("password", "token")
_FORMS = ("env:", "file:")
_NEVER_LITERAL = frozenset({"auth.password", "auth.token", PUBLISH_ID})
_WRITE = 'write {"from": "env:NAME"} or {"from": "file:PATH"}.'
_NOT_IN_A_NAME = re.compile(r"[^A-Z0-9]+")


class ReferenceRefusedError(Exception):
    """This reference is not looked up here; the message says why."""


class NoFolderError(ReferenceRefusedError):
    """No folder of files is configured, so no file is read."""


def secret_of_machine(reference: str) -> str | None:
    """Look up a reference in the environment or in a file, without the last line break.

    Raise NoFolderError for a file where no folder is configured; ReferenceRefusedError for a file
    outside of the folder, and for a variable set only without the prefix.
    """
    form, _, name = reference.partition(":")
    return _of_environment(name) if form == "env" else _of_file(name)


def variable_of(name: str) -> str:
    """Return the variable of this process for `env:NAME`: the name has the prefix."""
    prefix: str = settings.ENVIRONMENT.references.prefix
    return name if name.startswith(prefix) else prefix + name


def _of_environment(name: str) -> str | None:
    variable = variable_of(name)
    if variable not in os.environ and name in os.environ:
        raise ReferenceRefusedError(
            f"env:{name} is read from {variable}, which is not set; {name} itself is not read."
        )
    return os.environ.get(variable)


def _of_file(name: str) -> str | None:
    """Return the content of a file below the folder, wherever symbolic links lead."""
    folder = settings.ENVIRONMENT.references.folder
    if folder is None:
        raise NoFolderError(
            "Files are read only below the folder that INTURN_REFERENCE_FOLDER names; set it."
        )
    try:
        path = (folder / name).resolve()
        if not path.is_relative_to(folder.resolve()):
            raise ReferenceRefusedError(
                f"file:{name} is outside of {folder}, the folder that INTURN_REFERENCE_FOLDER "
                "names."
            )
        is_short = path.is_file() and path.stat().st_size <= LONGEST_FILE
        return path.read_text().removesuffix("\n") if is_short else None
    except (OSError, ValueError, RuntimeError):
        return None


def lookup_of_mapping(given: Mapping[str, str]) -> Lookup:
    """Look up a whole reference in the values sent along."""
    return given.get


@dataclass(slots=True)
class ReferenceNames:
    """Creates the references of a document, each of them unique."""

    _used: set[str] = field(default_factory=set)

    def of(self, row: Subscription | Subscriber, part: str) -> dict[str, str]:
        base = _NOT_IN_A_NAME.sub("_", f"{row}_{part}".upper()).strip("_")
        name, number = base, 1
        while name in self._used:
            number += 1
            name = f"{base}_{number}"
        self._used.add(name)
        return {"from": f"env:{name}"}


@dataclass(slots=True)
class Resolved:
    """An entry with the values of secrets; `kept` are fields whose stored secret stays.

    `unread` are the references naming unreadable files.
    """

    entry: DocumentEntry
    faults: list[DocumentFault] = field(default_factory=list)
    kept: list[tuple[str, str]] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)


def resolve_secrets(
    entry: DocumentEntry, *, of: str, stored: Subscription | Subscriber | None, lookup: Lookup
) -> Resolved:
    """Replace the references of an entry by their values; `of` names it in faults."""
    resolving = _Resolving(of=of, lookup=lookup, resolved=Resolved(entry=dict(entry)))
    for name in ("headers", "auth"):
        given = entry.get(name)
        if isinstance(given, dict):
            kept = getattr(stored, name, None) or {}
            resolving.resolved.entry[name] = {
                part: resolving.value(f"{name}.{part}", value, kept.get(part))
                for part, value in given.items()
            }
    return resolving.resolved


def resolve_publish_id(entry: DocumentEntry, *, of: str, has_one: bool, lookup: Lookup) -> Resolved:
    """The same for a publisher's entry: without a value it keeps the present publish ids."""
    resolving = _Resolving(of=of, lookup=lookup, resolved=Resolved(entry=dict(entry)))
    value = resolving.value(PUBLISH_ID, entry[PUBLISH_ID], "" if has_one else None)
    if resolving.resolved.kept or resolving.resolved.faults:
        del resolving.resolved.entry[PUBLISH_ID]
    else:
        resolving.resolved.entry[PUBLISH_ID] = value
    return resolving.resolved


@dataclass(frozen=True, slots=True, kw_only=True)
class _Resolving:
    of: str
    lookup: Lookup
    resolved: Resolved

    def value(self, place: str, given: Any, stored: Any) -> Any:
        if not isinstance(given, dict):
            if place in _NEVER_LITERAL:
                self._refuse(place, f"A secret does not stand in the file: {_WRITE}")
            return given
        reference = _reference(given)
        if reference is None:
            return self._refuse(place, _WRITE)
        try:
            found = self.lookup(reference)
        except NoFolderError as error:
            if stored is None:
                return self._refuse(place, str(error))
            self.resolved.unread.append(reference)
            found = None
        except ReferenceRefusedError as error:
            return self._refuse(place, str(error))
        if found is not None:
            return found
        if stored is None:
            detail = (
                f"There is no value for {reference}, and none is stored that could be kept: "
                "give it."
            )
            return self._refuse(place, detail)
        self.resolved.kept.append((place, reference))
        return stored

    def _refuse(self, place: str, detail: str) -> str:
        self.resolved.faults.append(DocumentFault(object=self.of, field=place, detail=detail))
        # A placeholder valid for the other checks.
        return "missing"


def _reference(value: Mapping[str, Any]) -> str | None:
    reference = value.get("from")
    is_one = set(value) == {"from"} and isinstance(reference, str) and reference.startswith(_FORMS)
    return reference if is_one else None
