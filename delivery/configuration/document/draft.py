"""Drafting a plan: each entry is validated and compared with the stored object; nothing is written.

An omitted field keeps its value, or gets the default in a new object. Objects without an entry stay
too. With `prune` they are deleted if the document contains their section.
"""

from collections import Counter
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from itertools import islice
from typing import Any

from django.db.models import Model
from django.utils import timezone

from delivery.configuration.document.checking import Checker
from delivery.configuration.document.document import (
    COMMON_SCRIPTS,
    POLICIES,
    PUBLISH_ID,
    PUBLISHERS,
    SECTIONS,
    SUBSCRIBERS,
    SUBSCRIPTIONS,
    DocumentEntry,
    DocumentFault,
    Section,
)
from delivery.configuration.document.export import exportable_rows, exported_value, plain_value
from delivery.configuration.document.plan import (
    ConfigurationRequest,
    Plan,
    PlannedField,
    PlannedObject,
    Verb,
)
from delivery.configuration.document.secrets import Resolved, resolve_publish_id, resolve_secrets
from subscriptions.checks.common_script import (
    MOST_NAMED,
    StoredScript,
    broken_by,
    described_fault,
    named,
)
from subscriptions.checks.moved_endpoint import kept_credentials, moved_refusals
from subscriptions.checks.sync_overlap import overlap_refusal
from subscriptions.dependents import first_dependents
from subscriptions.models import (
    EventType,
    Kind,
    Policy,
    Publisher,
    PublishId,
    Subscriber,
    Subscription,
)
from subscriptions.models.api_key import hash_of
from subscriptions.models.policy import DEFAULT_POLICY
from subscriptions.publish_ids import MAX_VALID, PublishIdRefusedError
from subscriptions.scripts.includes import Library, included_names

# The models a subscription refers to, with the name of the field.
_REFERENCES: dict[type[Model], str] = {
    EventType: "event_type",
    Policy: "policy",
    Subscriber: "subscriber",
}


# A row, and the plan's values for it; other fields keep the row's.
PlannedRow = tuple[Any, Mapping[str, Any]]


def draft_plan(wanted: ConfigurationRequest) -> Plan:
    """Return the plan with all faults but those of addresses, which are slower: see `addresses`."""
    drafting = _added(wanted)
    if wanted.prune:
        drafting.prune()
        drafting.find_needs()
    drafting.find_broken_scripts()
    drafting.find_conflicts()
    return drafting.plan


def drift(wanted: ConfigurationRequest) -> Plan:
    """Return the differences from the document, but of addresses, and undeletable objects."""
    drafting = _added(wanted)
    drafting.prune()
    drafting.find_conflicts()
    return drafting.plan


def _added(wanted: ConfigurationRequest) -> "_Drafting":
    drafting = _Drafting(wanted)
    for section in SECTIONS:
        if section.name in wanted.document:
            drafting.add(section)
    return drafting


class _Drafting:
    def __init__(self, wanted: ConfigurationRequest) -> None:
        self.plan = Plan()
        self._wanted = wanted
        self._publish_ids = KnownPublishIds()
        self._stored: dict[str, dict[str, Any]] = {
            section.name: {str(row): row for row in exportable_rows(section)}
            for section in SECTIONS
        }
        self._known: dict[type[Model], dict[str, Model]] = {
            model: {str(row): row for row in model._default_manager.all()} for model in _REFERENCES
        }
        self._common = self._planned_library()
        # The subscribers whose headers are all given by the document.
        self._with_new_headers: set[str] = set()
        # The result of the plan: rows with their new values.
        self._there: dict[str, dict[str, tuple[Any, Mapping[str, Any]]]] = {
            section: {name: (row, {}) for name, row in rows.items()}
            for section, rows in self._stored.items()
        }

    def add(self, section: Section) -> None:
        checker = Checker(
            section, self._known, identities=self._wanted.identities, common=self._common
        )
        for entry in sorted(self._wanted.document[section.name], key=section.key_of):
            name = _name(section, entry)
            planned = self._planned(section, entry, checker)
            if planned is not None:
                self.plan.objects.append(planned)
                self._there[section.name][name] = (planned.row, planned.values)
            if section.model in self._known:
                # A refused entry too: references to it are not at fault.
                made = section.model(name=name) if planned is None else planned.row
                self._known[section.model].setdefault(name, made)

    def _planned_library(self) -> Library:
        """Return the common scripts, stored and planned: each may include any other."""
        stored = {
            name: (row.text, row.runs_first)
            for name, row in self._stored[COMMON_SCRIPTS.name].items()
        }
        for entry in self._wanted.document.get(COMMON_SCRIPTS.name, ()):
            name, kept = entry["name"], stored.get(entry["name"], ("", False))
            text = entry.get("text", kept[0])
            stored[name] = (
                text if isinstance(text, str) else "",
                entry.get("runs_first", kept[1]) is True,
            )
        return Library(
            {name: text for name, (text, _) in stored.items()},
            first=tuple(name for name, (_, runs_first) in stored.items() if runs_first),
        )

    def _planned(
        self, section: Section, entry: DocumentEntry, checker: Checker
    ) -> PlannedObject | None:
        """Compare an entry with the row; None if it is refused, with the faults recorded."""
        name = _name(section, entry)
        row = self._stored[section.name].get(name)
        label = f"{section.noun} {name}"
        noted = len(self.plan.faults)
        if section in (SUBSCRIPTIONS, SUBSCRIBERS):
            entry = self._completed(entry, row, label)
        elif PUBLISH_ID in entry and section is PUBLISHERS:
            has_one = self._publish_ids.has_valid(name)
            entry = self._noted(
                resolve_publish_id(entry, of=label, has_one=has_one, lookup=self._wanted.lookup),
                label,
            )
        elif section is POLICIES and name in self._known[Policy] and row is None:
            detail = f"{name} is built in and cannot be changed; give the policy another name."
            self.plan.faults.append(DocumentFault(object=label, field="name", detail=detail))
        values, wrong = checker.check(entry, stored=row, of=label)
        self.plan.faults += wrong
        if section is SUBSCRIPTIONS and not wrong:
            self.plan.faults += moved_faults(
                row,
                values,
                entry=entry,
                kept=self._kept(label),
                with_new_headers=self._with_new_headers,
                of=label,
            )
        if len(self.plan.faults) > noted:
            return None
        planned = (
            planned_creation(section, values)
            if row is None
            else planned_change(section, row, values)
        )
        return self._with_publish_id(planned) if PUBLISH_ID in values else planned

    def _completed(
        self, entry: DocumentEntry, row: Subscription | Subscriber | None, label: str
    ) -> DocumentEntry:
        entry = self._noted(
            resolve_secrets(entry, of=label, stored=row, lookup=self._wanted.lookup), label
        )
        if row is None and "subscriber" in entry:
            entry.setdefault("policy", DEFAULT_POLICY)
        if isinstance(row, Subscriber) and "headers" in entry and not self._kept(label):
            self._with_new_headers.add(str(row))
        return entry

    def _kept(self, label: str) -> list[str]:
        return [place for of, place, _ in self.plan.kept if of == label]

    def _noted(self, resolved: Resolved, label: str) -> DocumentEntry:
        self.plan.faults += resolved.faults
        self.plan.kept += [(label, name, reference) for name, reference in resolved.kept]
        self.plan.unread += resolved.unread
        return resolved.entry

    def _with_publish_id(self, planned: PlannedObject) -> PlannedObject:
        text = planned.values[PUBLISH_ID]
        try:
            is_new = self._publish_ids.is_new(text, publisher=planned.name)
        except PublishIdRefusedError as refused:
            self.plan.faults.append(
                DocumentFault(object=planned.label, field=PUBLISH_ID, detail=str(refused))
            )
            return planned
        if not is_new:
            values = {name: value for name, value in planned.values.items() if name != PUBLISH_ID}
            return replace(planned, values=values)
        verb = Verb.CHANGE if planned.verb == Verb.UNCHANGED else planned.verb
        field = PlannedField(name=PUBLISH_ID, before=None, after=text)
        return replace(planned, verb=verb, fields=[*planned.fields, field])

    def prune(self) -> None:
        """Plan to delete the objects missing in the document's sections, dependents first."""
        doomed = [
            PlannedObject(section=section, verb=Verb.DELETE, row=row)
            for section in reversed(SECTIONS)
            if section.name in self._wanted.document
            for row in self._lacking(section)
        ]
        for planned_object in doomed:
            del self._there[planned_object.section.name][planned_object.name]
        self.plan.objects += doomed

    def find_needs(self) -> None:
        """Refuse to delete objects with dependents."""
        doomed = [
            planned_object
            for planned_object in self.plan.objects
            if planned_object.verb == Verb.DELETE
        ]
        self.plan.faults += [
            fault for planned_object in doomed for fault in self._needs(planned_object)
        ]

    def _lacking(self, section: Section) -> list[Model]:
        named = {_name(section, entry) for entry in self._wanted.document[section.name]}
        stored = self._stored[section.name]
        return [stored[name] for name in sorted(stored) if name not in named]

    def _needs(self, planned_object: PlannedObject) -> Iterator[DocumentFault]:
        reference = _REFERENCES.get(type(planned_object.row))
        is_named = reference is not None and any(
            values.get(reference, getattr(row, reference)) == planned_object.row
            for row, values in self._there[SUBSCRIPTIONS.name].values()
        )
        if planned_object.section is COMMON_SCRIPTS:
            found = named(
                each
                for each in self._scripts()
                if planned_object.name in dict(included_names(each.text))
            )
            dependents = f"scripts that include it ({found})" if found else None
        elif is_named:
            dependents = "subscriptions"
        else:
            dependents = first_dependents(planned_object.row, apart_from=(Subscription,))
        if dependents:
            what = (
                "make it INACTIVE"
                if planned_object.section is SUBSCRIPTIONS
                else "leave it in the document"
            )
            detail = f"It has {dependents}, so it cannot be deleted; {what}."
            yield DocumentFault(object=planned_object.label, field="", detail=detail)

    def find_broken_scripts(self) -> None:
        """Refuse common scripts with which a stored script would not be valid any more.

        Scripts in the document were checked with the document's common scripts.
        """
        before = self._stored_library()
        is_refused = any(fault.object.startswith(COMMON_SCRIPTS.noun) for fault in self.plan.faults)
        if is_refused or before == self._common:
            return
        broken = broken_by(self._scripts(is_stored=True), before=before, after=self._common)
        for script, fault in islice(broken, MOST_NAMED):
            detail = (
                f"It would not be valid any more with the common scripts: {described_fault(fault)}."
            )
            field = "text" if script.own else "script"
            self.plan.faults.append(DocumentFault(object=script.label, field=field, detail=detail))

    def _scripts(self, *, is_stored: bool = False) -> Iterator[StoredScript]:
        """Yield the scripts once the plan is applied, or the unchanged among them."""
        for section, field in ((SUBSCRIPTIONS, "script"), (COMMON_SCRIPTS, "text")):
            for name, (row, values) in self._there[section.name].items():
                text = values.get(field, getattr(row, field))
                if text and not (is_stored and field in values):
                    own = name if section is COMMON_SCRIPTS else ""
                    yield StoredScript(label=f"{section.noun} {name}", text=text, own=own)

    def _stored_library(self) -> Library:
        rows = self._stored[COMMON_SCRIPTS.name].values()
        return Library(
            {row.name: row.text for row in rows},
            first=tuple(row.name for row in rows if row.runs_first),
        )

    def find_conflicts(self) -> None:
        """Refuse subscriptions and subscribers that exclude each other once the plan is applied."""
        self.plan.faults += conflicting_subscriptions(
            self._there[SUBSCRIPTIONS.name].values(), identity_of=self._wanted.identity_of
        )
        self.plan.faults += shared_queue_ids(self._there[SUBSCRIBERS.name].values())


def _name(section: Section, entry: DocumentEntry) -> str:
    return "/".join(section.key_of(entry))


def planned_creation(section: Section, values: Mapping[str, Any]) -> PlannedObject:
    """Return the new object, with the fields other than default."""
    columns = _columns(section.model)
    row = section.model(**{name: value for name, value in values.items() if name in columns})
    if isinstance(row, Publisher):
        row.all_event_types = values.get("event_types") is None
    defaults = {} if isinstance(row, Publisher) else _defaults(section.model, section.fields)
    fields = [
        PlannedField(name=name, before=None, after=plain_value(values[name]))
        for name in section.fields
        if name in values
        and name not in section.key
        and plain_value(values[name]) != defaults.get(name)
    ]
    return PlannedObject(section=section, verb=Verb.CREATE, row=row, values=values, fields=fields)


@cache
def _columns(model: type[Model]) -> frozenset[str]:
    return frozenset(field.name for field in model._meta.concrete_fields)


@cache
def _defaults(model: type[Model], names: tuple[str, ...]) -> dict[str, Any]:
    """Only to compare with: some are lists and objects."""
    return {
        name: model._meta.get_field(name).get_default()  # type: ignore[union-attr]
        for name in names
    }


def planned_change(section: Section, row: Model, values: Mapping[str, Any]) -> PlannedObject:
    """Return the stored object with the fields other than in the row; UNCHANGED without any."""
    given = [name for name in section.fields if name in values]
    both = [(name, exported_value(row, name), plain_value(values[name])) for name in given]
    fields = [
        PlannedField(name=name, before=before, after=after)
        for name, before, after in both
        if before != after
    ]
    verb = Verb.CHANGE if fields else Verb.UNCHANGED
    return PlannedObject(section=section, verb=verb, row=row, values=values, fields=fields)


def conflicting_subscriptions(
    subscriptions: Iterable[PlannedRow], *, identity_of: Callable[[str], str]
) -> Iterator[DocumentFault]:
    """Yield a fault for each subscription that overlaps another one of its SYNC event type.

    See `subscriptions.checks.sync_overlap`.
    """
    first: dict[tuple[str, str, str], Subscription] = {}
    for row, values in subscriptions:
        if row.event_type.kind != Kind.SYNC:
            continue
        filter_string = values.get("header_filter_string", row.header_filter_string)
        filter_identity = identity_of(values.get("filter", row.filter))
        other = first.setdefault((row.event_type.name, filter_string, filter_identity), row)
        if other is not row:
            yield DocumentFault(
                object=f"{SUBSCRIPTIONS.noun} {row}", field="filter", detail=overlap_refusal(other)
            )


def shared_queue_ids(subscribers: Iterable[PlannedRow]) -> Iterator[DocumentFault]:
    """Yield a fault for each subscriber whose queue id another has."""
    first: dict[str, Model] = {}
    for row, values in subscribers:
        queue_id = values.get("queue_id", row.queue_id)
        if queue_id and (other := first.setdefault(queue_id, row)) is not row:
            detail = f"{other} has this queue id, too; give one of them another."
            label = f"{SUBSCRIBERS.noun} {row}"
            yield DocumentFault(object=label, field="queue_id", detail=detail)


def moved_faults(
    row: Subscription | None,
    values: Mapping[str, Any],
    *,
    entry: DocumentEntry,
    kept: Collection[str],
    of: str,
    with_new_headers: Container[str] = (),
) -> Iterator[DocumentFault]:
    """Yield a fault for each field whose stored credentials would newly go to a server.

    `kept` are the places of references without a value. An omitted field keeps its value, too.
    `with_new_headers`: the subscribers whose headers the document gives. `of` names the entry in
    faults; without a row it is created.
    """
    row = row or Subscription(subscriber=values["subscriber"])
    headers = values.get("headers", row.headers or {})
    found = kept_credentials(
        row,
        values,
        is_auth_kept="auth" not in entry or any(place.startswith("auth.") for place in kept),
        kept=[name for name in headers if "headers" not in entry or f"headers.{name}" in kept],
    )
    if str(row.subscriber) in with_new_headers:
        found = replace(found, shared={})
    refused = moved_refusals(row, values.get("endpoint", row.endpoint), found)
    for field, reason in refused.items():
        yield DocumentFault(object=of, field=field, detail=reason)


class KnownPublishIds:
    """The stored ids, and the document's; loaded when the document gives the first.

    Only hashes are stored, so no export has them. A document with the publisher's present id
    changes nothing.
    """

    def __init__(self) -> None:
        self._owners: dict[str, str] | None = None
        self._valid: set[str] = set()
        self._count: Counter[str] = Counter()

    def has_valid(self, publisher: str) -> bool:
        self._load()
        return self._count[publisher] > 0

    def is_new(self, text: str, *, publisher: str) -> bool:
        """Return False if the publisher has it; raise PublishIdRefusedError if it cannot get it."""
        owners = self._load()
        hashed = hash_of(text)
        if owners.get(hashed) == publisher and hashed in self._valid:
            return False
        if hashed in owners:
            raise PublishIdRefusedError(
                f"This publish id is in use, or was, by {owners[hashed]}. Give another, "
                "or leave it out."
            )
        if self._count[publisher] >= MAX_VALID:
            raise PublishIdRefusedError(
                f"{MAX_VALID} publish ids of {publisher} are valid. End one first."
            )
        owners[hashed] = publisher
        return True

    def _load(self) -> dict[str, str]:
        if self._owners is None:
            rows = PublishId.objects.order_by()
            self._owners = dict(rows.values_list("hash", "publisher__name"))
            valid = rows.valid(now=timezone.now()).values_list("hash", "publisher__name")
            for hashed, publisher in valid:
                self._valid.add(hashed)
                self._count[publisher] += 1
        return self._owners
