"""Export of the configuration as a document: by names, sorted, without ids, times and secrets."""

from collections.abc import Callable, Collection, Mapping
from typing import Any

from django.db.models import Model, QuerySet

from delivery.api.subscribing.subscription_fields import NO_AUTH
from delivery.configuration.document.document import (
    EVENT_TYPES,
    FORMAT,
    POLICIES,
    PUBLISHERS,
    SECTIONS,
    SUBSCRIBERS,
    SUBSCRIPTIONS,
    DocumentEntry,
    Section,
)
from delivery.configuration.document.secrets import SECRET_PARTS, ReferenceNames
from subscriptions.models import Publisher, Subscriber, Subscription
from subscriptions.values.names import RESERVED_PREFIX


def export_configuration(*, only: Collection[str] = ()) -> dict[str, Any]:
    """Return the current configuration as a document; `only` names sections."""
    content: dict[str, Any] = {"format": FORMAT}
    names = ReferenceNames()
    for section in (known for known in SECTIONS if not only or known.name in only):
        rows = sorted(exportable_rows(section), key=lambda row: (str(row).casefold(), str(row)))
        content[section.name] = [_entry(section, row, names) for row in rows]
    return content


def exportable_rows(section: Section) -> QuerySet[Any]:
    """Return the exportable rows with the referred objects; Inturn's own are left out."""
    rows = section.model._default_manager.order_by()
    if section in (EVENT_TYPES, SUBSCRIBERS):
        rows = rows.exclude(name__startswith=RESERVED_PREFIX)
    elif section is POLICIES:
        rows = rows.filter(is_built_in=False)
    elif section is PUBLISHERS:
        rows = rows.prefetch_related("event_types")
    elif section is SUBSCRIPTIONS:
        # The first callback makes a subscriber of Inturn's own.
        rows = rows.exclude(subscriber__name__startswith=RESERVED_PREFIX)
        rows = rows.select_related("subscriber", "event_type", "policy")
    return rows


def exported_value(row: Model, field: str) -> Any:
    """Return a field as in a document, secrets included; other objects are given by name."""
    if isinstance(row, Publisher) and field == "event_types":
        return (
            None
            if row.all_event_types
            else sorted(event_type.name for event_type in row.event_types.all())
        )
    return plain_value(getattr(row, field))


def plain_value(value: Any) -> Any:
    """Return a value as in a document; other objects are given by name."""
    if isinstance(value, Model):
        return str(value)
    if isinstance(value, list) and value and isinstance(value[0], Model):
        return sorted(map(str, value))
    return {} if value == NO_AUTH else value


def _entry(section: Section, row: Model, names: ReferenceNames) -> DocumentEntry:
    entry = {field: exported_value(row, field) for field in section.fields}
    if isinstance(row, Subscriber):
        headers = row.headers or {}
        entry["headers"] = {part: names.of(row, f"header_{part}") for part in sorted(headers)}
    if isinstance(row, Subscription):
        entry["headers"] = {part: names.of(row, f"header_{part}") for part in sorted(row.headers)}
        entry["auth"] = _without_secrets(row.auth or NO_AUTH, lambda part: names.of(row, part))
    return entry


def _without_secrets(auth: Mapping[str, Any], reference: Callable[[str], Any]) -> DocumentEntry:
    return {part: reference(part) if part in SECRET_PARTS else auth[part] for part in sorted(auth)}
