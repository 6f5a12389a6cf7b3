"""Applying a plan in one transaction, if it is still current.

Two people may apply at once, or somebody may edit an object by hand meanwhile: lock the rows to be
changed, then draft the plan again, unless no row has changed since (`row_versions`; pruning depends
on more, so it is always drafted again). If the two differ, nothing is done. Rows created or deleted
meanwhile cannot be locked, but the table refuses the write (an existing name, a reference to a
deleted row), and again nothing is done.
"""

from collections.abc import Callable, Collection, Container, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from django.db import IntegrityError, models, transaction
from django.db.models.expressions import RawSQL
from django.utils import timezone
from psycopg.errors import CheckViolation

from delivery.configuration.document.document import (
    PUBLISH_ID,
    SECTIONS,
    SUBSCRIPTIONS,
    DocumentFault,
    RefusedDocumentError,
    Section,
)
from delivery.configuration.document.draft import draft_plan
from delivery.configuration.document.export import exportable_rows
from delivery.configuration.document.plan import ConfigurationRequest, Plan, PlannedObject, Verb
from subscriptions.changes import MASKED, SECRET_FIELDS, change_of, snapshot
from subscriptions.checks.addresses import URL_FIELDS
from subscriptions.models import (
    ConfigurationChange,
    EventType,
    Kind,
    Mode,
    Publisher,
    PublishId,
    SigningSecret,
    Subscriber,
    Subscription,
)
from subscriptions.publish_ids import PublishIdRefusedError, rotate_publish_id
from subscriptions.rewriting import Server, refused_servers
from subscriptions.values.addresses import Network
from subscriptions.values.endpoints import INTERNAL, parse_endpoint

_BATCH = 500
# By table: primary key, transaction and place of each row.
Versions = dict[str, list[tuple[int, str, str]]]

_MODELS: tuple[type[models.Model], ...] = (
    *(section.model for section in SECTIONS),
    Publisher.event_types.through,
    PublishId,
)


def row_versions() -> Versions:
    """Return PostgreSQL's versions of all rows behind a plan.

    A row's `xmin` and `ctid` differ after each change, however it was made. To draft a plan takes
    far longer than to read these. Call it before the draft: a row changed meanwhile has another
    version afterwards.
    """
    xmin, ctid = RawSQL("xmin::text", ()), RawSQL("ctid::text", ())
    return {
        model._meta.db_table: list(model._base_manager.order_by("pk").values_list("pk", xmin, ctid))
        for model in _MODELS
    }


class PlanChangedError(Exception):
    """The plan has changed since it was shown; nothing was done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Applying:
    """Who applies, and the digest of the plan they have seen.

    `set_status` changes the status of an existing subscription or subscriber and records the change
    itself, because the backlog belongs to another package. `notify` is called in the transaction if
    anything changed.
    """

    digest: str
    actor: str
    set_status: Callable[[Subscription | Subscriber, str], object]
    notify: Callable[[], object]
    allowed_networks: Collection[Network]
    built_in_receivers: Container[str] = ()


def plan_configuration(
    wanted: ConfigurationRequest,
    *,
    allowed_networks: Collection[Network],
    built_in_receivers: Container[str] = (),
) -> Plan:
    """Return the plan; raises RefusedDocumentError with all faults."""
    planned = draft_plan(wanted)
    find_refused(planned, allowed_networks=allowed_networks, built_in_receivers=built_in_receivers)
    planned.refuse_faults()
    return planned


def apply_configuration(wanted: ConfigurationRequest, applying: Applying) -> Plan:
    """Carry out the plan with the digest and return it.

    Raises PlanChangedError, RefusedDocumentError.
    """
    versions = row_versions()
    seen = plan_configuration(
        wanted,
        allowed_networks=applying.allowed_networks,
        built_in_receivers=applying.built_in_receivers,
    )
    if seen.digest != applying.digest:
        raise PlanChangedError
    with _refusing_conflicts(), transaction.atomic():
        _lock(seen)
        planned = seen if versions == row_versions() and not wanted.prune else draft_plan(wanted)
        if planned.faults or planned.digest != seen.digest:
            raise PlanChangedError
        _Writing(wanted, applying).write(planned)
    return planned


def _lock(planned: Plan) -> None:
    """Lock the rows to change or delete, and SYNC event types against conflicting subscriptions.

    Publishing refers to these rows and goes on, unless they are about to be deleted.
    """
    if any(isinstance(change.row, Subscription) for change in planned.changes):
        _locked(EventType.objects.filter(kind=Kind.SYNC), no_key=True)
    stored = [change for change in planned.changes if change.row.pk is not None]
    for verb in (Verb.CHANGE, Verb.DELETE):
        of_verb = [change for change in stored if change.verb == verb]
        for section, ones in groupby(of_verb, key=lambda change: change.section):
            ids = [change.row.pk for change in ones]
            _locked(exportable_rows(section).filter(pk__in=ids), no_key=verb == Verb.CHANGE)


def _locked(rows: "models.QuerySet[Any]", *, no_key: bool) -> None:
    # By id, as everywhere, so two transactions cannot deadlock.
    plain = rows.select_related(None).prefetch_related(None).order_by("pk")
    list(plain.select_for_update(of=("self",), no_key=no_key).values_list("pk"))


class _Writing:
    def __init__(self, wanted: ConfigurationRequest, applying: Applying) -> None:
        self._wanted = wanted
        self._applying = applying
        self._log: list[ConfigurationChange] = []

    def write(self, planned: Plan) -> None:
        for section in SECTIONS:
            ones = [change for change in planned.changes if change.section is section]
            # Changes first: they may free a value (such as a queue id) for a new object.
            for change in ones:
                if change.verb == Verb.CHANGE:
                    self._change(change)
            self._create(section, [change for change in ones if change.verb == Verb.CREATE])
        self._delete(change for change in planned.changes if change.verb == Verb.DELETE)
        ConfigurationChange.objects.bulk_create(self._log, batch_size=_BATCH)
        if planned.changes:
            self._applying.notify()

    def _create(self, section: Section, ones: list[PlannedObject]) -> None:
        if section.model is Subscription:
            self._create_subscriptions(
                [change.row for change in ones if isinstance(change.row, Subscription)]
            )
        else:
            # Singly: `save` sends signals to other code.
            for change in ones:
                change.row.save()
                _link(change)
        self._log += [
            self._entry("created", change.row, after=_state(change.row) | _new_publish_id(change))
            for change in ones
        ]

    def _create_subscriptions(self, rows: list[Subscription]) -> None:
        for row in rows:
            row.filter_identity = self._wanted.identity_of(row.filter)
        Subscription.objects.bulk_create(rows, batch_size=_BATCH)
        secrets = [SigningSecret(subscription=row) for row in rows if row.mode == Mode.PUSH]
        SigningSecret.objects.bulk_create(secrets, batch_size=_BATCH)

    def _change(self, change: PlannedObject) -> None:
        row = change.row
        changed = {field.name for field in change.fields}
        before = _state(row)
        status = change.values["status"] if "status" in changed else None
        columns = {column.name for column in row._meta.concrete_fields} & (changed - {"status"})
        for name in columns:
            setattr(row, name, change.values[name])
        if isinstance(row, Publisher) and "event_types" in changed:
            row.all_event_types = change.values["event_types"] is None
            columns.add("all_event_types")
        # Only the changed columns: see `StrictModel.update`.
        row.save(update_fields=columns | {"updated_at"})
        _link(change)
        renewed = dict.fromkeys(SECRET_FIELDS & changed, f"{MASKED}, new value")
        if changed - {"status"} or status is None:
            after = _state(row) | renewed
            self._log.append(self._entry("changed", row, before=before, after=after))
        if status is not None and isinstance(row, Subscription | Subscriber):
            self._applying.set_status(row, status)

    def _delete(self, ones: Iterable[PlannedObject]) -> None:
        for change in ones:
            self._log.append(self._entry("deleted", change.row, before=_state(change.row)))
            change.row.delete()

    def _entry(
        self,
        action: str,
        row: models.Model,
        *,
        before: dict[str, Any] | None = None,
        after: dict[str, Any] | None = None,
    ) -> ConfigurationChange:
        return change_of(
            actor=self._applying.actor, action=action, instance=row, before=before, after=after
        )


def _link(change: PlannedObject) -> None:
    if not isinstance(change.row, Publisher):
        return
    if "event_types" in change.values:
        change.row.event_types.set(change.values["event_types"] or [])
    if PUBLISH_ID in change.values:
        try:
            rotate_publish_id(change.row, text=change.values[PUBLISH_ID], now=timezone.now())
        except PublishIdRefusedError:
            # Another publisher got it meanwhile.
            raise PlanChangedError from None


def _new_publish_id(change: PlannedObject) -> dict[str, str]:
    return {PUBLISH_ID: f"{MASKED}, new value"} if PUBLISH_ID in change.values else {}


def _state(row: models.Model) -> dict[str, Any]:
    linked = (
        {"event_types": sorted(map(str, row.event_types.all()))}
        if isinstance(row, Publisher)
        else {}
    )
    return snapshot(row) | linked


@contextmanager
def _refusing_conflicts() -> Iterator[None]:
    """Raise PlanChangedError for a conflict with somebody else, a fault for a CHECK violation."""
    try:
        yield
    except IntegrityError as error:
        if isinstance(error.__cause__, CheckViolation):
            detail = (
                f"Values contradict each other: {error.__cause__.diag.constraint_name}. "
                "Nothing was changed."
            )
            fault = DocumentFault(
                object=error.__cause__.diag.table_name or "", field="", detail=detail
            )
            raise RefusedDocumentError([fault]) from None
        raise PlanChangedError from None


def find_refused(
    plan: Plan, *, allowed_networks: Collection[Network], built_in_receivers: Container[str]
) -> None:
    """Add a fault for each server with a forbidden address; call it before any lock, it resolves.

    It may serve thousands of subscriptions. Built-in receivers are accepted.
    """
    users: dict[Server, list[tuple[str, str]]] = {}
    for change in plan.changes:
        for label, field, server in _urls(change, built_in_receivers):
            users.setdefault(server, []).append((label, field))
    for server, detail in refused_servers(sorted(users), allowed_networks).items():
        (label, field), *others = users[server]
        count = "is 1 other URL" if len(others) == 1 else f"are {len(others):,} others"
        also = f" So {count} of this server."
        plan.faults.append(
            DocumentFault(object=label, field=field, detail=detail + (also if others else ""))
        )


def _urls(
    change: PlannedObject, built_in_receivers: Container[str]
) -> Iterator[tuple[str, str, Server]]:
    if change.section is not SUBSCRIPTIONS or change.verb == Verb.DELETE:
        return
    for field in change.fields:
        if field.name in URL_FIELDS and field.after and field.after != INTERNAL:
            parsed = parse_endpoint(field.after)
            if parsed.url not in built_in_receivers:
                yield change.label, field.name, (parsed.host, parsed.port)
