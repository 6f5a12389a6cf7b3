"""The format of the configuration document: the objects and fields, and their order.

    {"format": 1, "event_types": [{"name": …}], "policies": […], "common_scripts": […],
     "subscribers": […], "publishers": […], "subscriptions": […]}

Objects are identified by name, a subscription by its subscriber's name and its own. A document has
every field of their models but those that are left out for a reason.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import models

from subscriptions.models import (
    ApiKey,
    CommonScript,
    ConfigurationChange,
    ConfigurationTransaction,
    EventType,
    Installation,
    Policy,
    Publisher,
    PublishId,
    SavedView,
    ScriptLibrary,
    SignIn,
    SigningSecret,
    Subscriber,
    Subscription,
    WorkfrontSubscription,
)

FORMAT = 1
PUBLISH_ID = "publish_id"

DocumentEntry = dict[str, Any]

_ROW = {
    "id": "objects are known by their names",
    **dict.fromkeys(("created_at", "updated_at"), "Inturn sets it"),
}
_WATCHED = {**_ROW, "changed_in": "a trigger sets it"}
_HELD = {"held_until": "it ends a hold", "catch_up_rate": "it ends a hold"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A list of the document.

    `fields` are in written order; no export has `given_only`.
    """

    name: str
    model: type[models.Model]
    fields: tuple[str, ...]
    key: tuple[str, ...]
    given_only: tuple[str, ...]

    @property
    def noun(self) -> str:
        return str(self.model._meta.verbose_name)

    def key_of(self, entry: Mapping[str, Any]) -> tuple[Any, ...]:
        return tuple(entry.get(field) for field in self.key)


def _section(
    name: str,
    model: type[models.Model],
    *,
    left_out: Mapping[str, str],
    key: tuple[str, ...] = ("name",),
    given_only: tuple[str, ...] = (),
) -> Section:
    """Return a section with all fields of the model, in their order, but for those left out."""
    declared = (*model._meta.fields, *model._meta.many_to_many)
    columns = [field.name for field in sorted(declared, key=lambda field: field.creation_counter)]
    unknown = set(left_out) - set(columns)
    assert not unknown, unknown
    fields = tuple(column for column in columns if column not in left_out)
    return Section(name=name, model=model, fields=fields, key=key, given_only=given_only)


EVENT_TYPES = _section("event_types", EventType, left_out=_ROW)
POLICIES = _section(
    "policies",
    Policy,
    left_out={**_WATCHED, "is_built_in": "built-in policies stand in no document"},
)
COMMON_SCRIPTS = _section("common_scripts", CommonScript, left_out=_ROW)
SUBSCRIBERS = _section(
    "subscribers",
    Subscriber,
    left_out={**_WATCHED, **_HELD, "queue_password": "only its hash is stored, as of keys"},
)
PUBLISHERS = _section(
    "publishers",
    Publisher,
    left_out={
        **_ROW,
        "all_event_types": "event_types is null then",
        "developers": "accounts belong to one installation",
    },
    given_only=(PUBLISH_ID,),
)
SUBSCRIPTIONS = _section(
    "subscriptions",
    Subscription,
    key=("subscriber", "name"),
    left_out={
        **_WATCHED,
        **_HELD,
        "filter_identity": "it follows from the filter",
        "script_version": "the database counts it",
        "cancellation_id": "it is about deliveries",
    },
)
# Each refers only to sections before it.
SECTIONS = (EVENT_TYPES, POLICIES, COMMON_SCRIPTS, SUBSCRIBERS, PUBLISHERS, SUBSCRIPTIONS)
NAMES = tuple(section.name for section in SECTIONS)

LEFT_OUT_MODELS: dict[type[models.Model], str] = {
    PublishId: "only the hash is stored; they are made or taken over where they are used",
    ApiKey: "only the hash is stored; keys are made where they are used",
    SigningSecret: "it is made with its subscription, and rotated",
    ScriptLibrary: "a trigger counts",
    Installation: "a person holds and releases all sending from day to day",
    ConfigurationChange: "a log",
    ConfigurationTransaction: "a log",
    SignIn: "a log",
    SavedView: "people save their views of lists, and users are not in the document",
    WorkfrontSubscription: "its subscription stands in the document; "
    "it is only how Workfront's clients know that one",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentFault:
    """A reason to refuse a document, with object and field.

    Both are empty for the whole document.
    """

    object: str
    field: str
    detail: str

    def __str__(self) -> str:
        place = ", ".join(part for part in (self.object, self.field) if part)
        return f"{place}: {self.detail}" if place else self.detail


class RefusedDocumentError(ValueError):
    """The document cannot be applied; `faults` has every reason. Nothing was changed."""

    def __init__(self, faults: Sequence[DocumentFault]) -> None:
        super().__init__("\n".join(map(str, faults)))
        self.faults = list(faults)


def document_refused(detail: str) -> RefusedDocumentError:
    """Return an error about the document as a whole."""
    return RefusedDocumentError([DocumentFault(object="", field="", detail=detail)])
