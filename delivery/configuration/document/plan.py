"""A plan: each object of a document is created, changed, deleted or unchanged, field by field.

The digest is equal only for equal changes. `apply_configuration` requires the digest, so it makes
no unseen change.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import orjson
from django.db.models import Model
from django.utils.crypto import salted_hmac

from delivery.configuration.document.document import (
    PUBLISH_ID,
    DocumentEntry,
    DocumentFault,
    RefusedDocumentError,
    Section,
)
from delivery.configuration.document.secrets import Lookup
from subscriptions.changes import MASKED, SECRET_FIELDS
from subscriptions.filters import filter_identity

_SHOWN_OF_AUTH = {"type", "username"}


class Verb(StrEnum):
    CREATE = "create"
    CHANGE = "change"
    DELETE = "delete"
    UNCHANGED = "unchanged"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigurationRequest:
    """A document as `document_json.check_entries` returned it, with the options to apply it.

    `identities` caches the identity of each valid filter, `consistent` the values valid for the
    check constraints, because a document is checked several times.
    """

    document: Mapping[str, list[DocumentEntry]]
    lookup: Lookup
    prune: bool = False
    identities: dict[str, str] = field(default_factory=dict)

    def identity_of(self, text: str) -> str:
        return self.identities.get(text) or filter_identity(text)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedField:
    """A field as in a document, secrets included: show `shown_before` and `shown_after` only."""

    name: str
    before: Any
    after: Any

    @property
    def shown_before(self) -> Any:
        return self._shown(self.before)

    @property
    def shown_after(self) -> Any:
        return self._shown(self.after)

    def _shown(self, value: Any) -> Any:
        if self.name == PUBLISH_ID and value is not None:
            return MASKED
        if self.name not in SECRET_FIELDS or not isinstance(value, Mapping):
            return value
        seen = _SHOWN_OF_AUTH if self.name == "auth" else set()
        return {part: given if part in seen else MASKED for part, given in value.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedObject:
    """`row` is the row, stored or new; `values` are the validated values by field.

    For a new object, `fields` are those without their default value.
    """

    section: Section
    verb: Verb
    row: Model
    values: Mapping[str, Any] = field(default_factory=dict)
    fields: list[PlannedField] = field(default_factory=list)

    @property
    def name(self) -> str:
        return str(self.row)

    @property
    def label(self) -> str:
        return f"{self.section.noun} {self.name}"


@dataclass(slots=True)
class Plan:
    """`kept` are references without a value, whose secrets stay: object, field, reference.

    `unread` are those naming files, on a machine without files.
    """

    objects: list[PlannedObject] = field(default_factory=list)
    faults: list[DocumentFault] = field(default_factory=list)
    kept: list[tuple[str, str, str]] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)

    @property
    def changes(self) -> list[PlannedObject]:
        return [
            planned_object
            for planned_object in self.objects
            if planned_object.verb != Verb.UNCHANGED
        ]

    def count(self, verb: Verb) -> int:
        return sum(planned_object.verb == verb for planned_object in self.objects)

    @property
    def digest(self) -> str:
        content = [
            [
                change.label,
                change.verb,
                [[each.name, each.before, each.after] for each in change.fields],
            ]
            for change in self.changes
        ]
        # Keyed, because it includes the values of secrets.
        return salted_hmac(
            "configuration plan", orjson.dumps(content), algorithm="sha256"
        ).hexdigest()

    def refuse_faults(self) -> None:
        if self.faults:
            raise RefusedDocumentError(self.faults)
