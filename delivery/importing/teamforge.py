"""Import of TeamForge's webhook configuration: one row per subscription, as CSV or JSON.

The columns are EventName, ContentType, EventType, PublisherName, PublisherID, SubscriberName,
Status, HttpHeaders, WebhookEndpoint, SubsFilter, HeaderFilterString and CustomScript; all but
EventName may be empty, and other columns are ignored.
"""

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

from delivery.importing.imported import Imported, SourceError
from subscriptions.filters import FilterError, parse_filter
from subscriptions.models import Kind

_STRAIGHT = str.maketrans("‘’‚‛“”„‟", "''''\"\"\"\"")
_NOT_IN_A_REFERENCE = re.compile(r"[^A-Z0-9]+")

Row = Mapping[str, str]


def import_teamforge(text: str) -> Imported:
    """Convert the rows; raises SourceError for any other input."""
    imported = Imported()
    numbers: Counter[tuple[str, str]] = Counter()
    for row in _rows(text):
        event_type = imported.name_of(row.get("EventName", ""), what="event type")
        _add_event_type(imported, row, event_type)
        _add_publisher(imported, row, event_type)
        if row.get("SubscriberName"):
            subscriber = imported.name_of(row["SubscriberName"], what="subscriber")
            imported.add("subscribers", {"name": subscriber})
            numbers[subscriber, event_type] += 1
            number = numbers[subscriber, event_type]
            name = event_type if number == 1 else f"{event_type}-{number}"
            _add_subscription(imported, row, (subscriber, name, event_type))
    _warn_of_case(imported)
    return imported


def _rows(text: str) -> list[Row]:
    if text.lstrip().startswith("["):
        try:
            rows = json.loads(text)
        except json.JSONDecodeError as error:
            raise SourceError(f"The source is not JSON: {error}.") from None
    else:
        rows = list(csv.DictReader(io.StringIO(text.removeprefix("\ufeff"))))
    if not rows or not all(isinstance(row, dict) and row.get("EventName") for row in rows):
        raise SourceError("A CSV file or a JSON list of rows with EventName was expected.")
    return [{name: _text(value) for name, value in row.items() if isinstance(name, str)} for row in rows]


def _text(value: Any) -> str:
    if value is None:
        return ""
    return value.strip() if isinstance(value, str) else json.dumps(value)


def _add_event_type(imported: Imported, row: Row, name: str) -> None:
    kind = row.get("EventType", "").upper() or Kind.TOPIC.value
    if kind not in Kind.values:
        raise SourceError(f"{name}: EventType {kind[:50]} is none of {', '.join(Kind.values)}.")
    imported.add(
        "event_types",
        {"name": name, "kind": kind, "content_type": row.get("ContentType") or "application/json"},
    )


def _add_publisher(imported: Imported, row: Row, event_type: str) -> None:
    if not row.get("PublisherName"):
        return
    name = imported.name_of(row["PublisherName"], what="publisher")
    if imported.add("publishers", {"name": name, "event_types": [event_type]}) and row.get("PublisherID"):
        imported.impossible.append(f"publisher {name}: its PublisherID cannot be kept; create a key for it")
    allowed = imported.entries["publishers"][(name,)]["event_types"]
    if event_type not in allowed:
        allowed.append(event_type)
        allowed.sort()


def _add_subscription(imported: Imported, row: Row, names: tuple[str, str, str]) -> None:
    subscriber, name, event_type = names
    label = f"subscription {subscriber}/{name}"
    wish = row.get("SubsFilter", "")
    text = wish.translate(_STRAIGHT)
    try:
        if text:
            parse_filter(text)
    except FilterError as error:
        imported.impossible.append(f"{label}: its filter {wish} is refused ({error}); write it anew")
        return
    if not row.get("WebhookEndpoint", "").lower().partition("://")[0].endswith(("http", "https")):
        imported.impossible.append(
            f"{label}: {row.get('WebhookEndpoint') or 'no endpoint'} is no URL; give it one"
        )
        return
    if text != wish:
        imported.differently.append(f"{label}: curly quotes of its filter are straight")
    status = "INACTIVE" if row.get("Status", "").upper() == "INACTIVE" else "ACTIVE"
    if row.get("CustomScript"):
        status = "INACTIVE"
        imported.impossible.append(
            f"{label}: its script is not taken over, so it is INACTIVE; check what it did"
        )
    imported.add(
        "subscriptions",
        {
            "subscriber": subscriber,
            "name": name,
            "event_type": event_type,
            "header_filter_string": row.get("HeaderFilterString", ""),
            "filter": text,
            "endpoint": row["WebhookEndpoint"],
            "headers": _headers(imported, row, label),
            "status": status,
        },
    )


def _headers(imported: Imported, row: Row, label: str) -> dict[str, Any]:
    """Return the headers as references, because their values may be secrets."""
    given = row.get("HttpHeaders", "")
    try:
        pairs = (
            json.loads(given)
            if given.startswith("{")
            else dict(line.split(":", 1) for line in given.splitlines() if line.strip())
        )
    except ValueError:
        raise SourceError(f"{label}: HttpHeaders is neither JSON nor lines of Name: value.") from None
    headers = {}
    for name, value in pairs.items():
        place = _NOT_IN_A_REFERENCE.sub("_", f"{label.partition(' ')[2]}_HEADER_{name.strip()}".upper())
        imported.secrets[place] = str(value).strip()
        headers[name.strip()] = {"from": f"env:{place}"}
        imported.differently.append(f"{label}: the value of its header {name.strip()} is expected in {place}")
    return headers


def _warn_of_case(imported: Imported) -> None:
    first: dict[str, str] = {}
    for (name,) in imported.entries["event_types"]:
        other = first.setdefault(name.lower(), name)
        if other != name:
            imported.differently.append(f"event types {other} and {name} differ in case only; they are two")
