"""Import of TeamForge's webhook configuration: a row per subscription, as CSV or JSON.

The columns are EventName, ContentType, EventType, EventFormat, PublisherName, PublisherID,
SubscriberName, Status, HttpHeaders, WebhookEndpoint, SubsFilter, HeaderFilterString and
CustomScript; all but EventName may be empty. Values in other columns are reported as not read.
"""

import json
import re
from collections import Counter
from typing import Any

from delivery.configuration.document.document import PUBLISH_ID
from delivery.management.importing.import_result import Imported, SourceError
from delivery.management.importing.source import csv_rows, parse_source
from delivery.management.importing.unread import SourceObject, close_name
from subscriptions.checks.subscription import refusals
from subscriptions.filters import FilterError, parse_filter
from subscriptions.models import EventType, Kind
from subscriptions.publish_ids import PublishIdRefusedError, check_text
from subscriptions.scripts.includes import Library, included_names
from subscriptions.values.endpoints import INTERNAL

_STRAIGHT = str.maketrans("‘’‚‛“”„‟", "''''\"\"\"\"")
# A script has no network.
_CALLS = re.compile(r"ctf_\w+|\bweb(?:Get|Post|Put|Patch|Delete)\w*|\$orch\b")
_INCLUDE = "$include$"
_ORCHESTRATION = "orch://"

Row = SourceObject


def import_teamforge(text: str) -> Imported:
    """Convert the rows; raises SourceError for any other input."""
    imported = Imported()
    numbers: Counter[tuple[str, str]] = Counter()
    for row in (imported.source_object(row, noun="column") for row in _rows(text)):
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


def _rows(text: str) -> list[dict[str, str]]:
    is_json = text.lstrip("\ufeff \t\r\n").startswith("[")
    rows = parse_source(text) if is_json else csv_rows(text)
    if not rows or not all(isinstance(row, dict) and row.get("EventName") for row in rows):
        raise SourceError(_unexpected(rows))
    # Cells beyond the header row have the name None.
    return [{name or "": _text(value) for name, value in row.items()} for row in rows]


def _unexpected(rows: list[Any]) -> str:
    expected = "A CSV file or a JSON list of rows with EventName was expected"
    names = rows[0].keys() if rows and isinstance(rows[0], dict) else ()
    close = close_name("EventName", [name for name in names if name])
    if close in ("", "EventName"):
        return f"{expected}."
    return f"{expected}; the source has {close}. Name the columns as Inturn's guide has them."


def _text(value: Any) -> str:
    if value is None:
        return ""
    return value.strip() if isinstance(value, str) else json.dumps(value)


def _add_event_type(imported: Imported, row: Row, name: str) -> None:
    kind = row.get("EventType", "").upper() or Kind.TOPIC.value
    if kind not in Kind.values:
        raise SourceError(f"{name}: EventType {kind[:50]} is none of {', '.join(Kind.values)}.")
    entry = {
        "name": name,
        "kind": kind,
        "content_type": row.get("ContentType") or "application/json",
    }
    if not imported.add("event_types", entry):
        _warn_of_difference(imported, entry, row)
    if row.get("EventFormat"):
        _add_sample(imported, imported.entries["event_types"][(name,)], row["EventFormat"])


def _warn_of_difference(imported: Imported, entry: dict[str, Any], row: Row) -> None:
    """Report a row that changes the kind or content type of an event type."""
    first = imported.entries["event_types"][(entry["name"],)]
    for column, field in (("EventType", "kind"), ("ContentType", "content_type")):
        if row.get(column) and entry[field] != first[field]:
            imported.report_impossible(
                f"event type {entry['name']}: it is {first[field]} in an earlier row; "
                f"{column} {entry[field][:50]} is not taken over"
            )


def _add_sample(imported: Imported, entry: dict[str, Any], text: str) -> None:
    """Take over the first JSON format of an event type as the sample."""
    try:
        entry.setdefault("sample", parse_source(text))
    except ValueError:
        imported.report_impossible(
            f"event type {entry['name']}: its EventFormat is not JSON; "
            "give it a sample in the console"
        )


def _add_publisher(imported: Imported, row: Row, event_type: str) -> None:
    if not row.get("PublisherName"):
        return
    name = imported.name_of(row["PublisherName"], what="publisher")
    imported.add("publishers", {"name": name, "event_types": [event_type]})
    entry = imported.entries["publishers"][(name,)]
    allowed = entry["event_types"]
    if event_type not in allowed:
        allowed.append(event_type)
        allowed.sort()
    if row.get("PublisherID"):
        _add_publish_id(imported, entry, row["PublisherID"], event_type)


def _add_publish_id(imported: Imported, entry: dict[str, Any], text: str, event_type: str) -> None:
    """The publish addresses stay. The id is a credential: the document gets a reference."""
    label = f"publisher {entry['name']}"
    if PUBLISH_ID in entry:
        if text != imported.secrets[entry[PUBLISH_ID]["from"].removeprefix("env:")]:
            imported.report_impossible(
                f"{label}: its PublisherID for {event_type} is not that of an earlier row; "
                "the addresses with it change"
            )
        return
    try:
        check_text(text)
    except PublishIdRefusedError as refused:
        imported.report_impossible(
            f"{label}: its PublisherID cannot be kept, so its publish addresses change. {refused}"
        )
        return
    place = imported.reference(entry["name"], PUBLISH_ID)
    imported.secrets[place] = text
    entry[PUBLISH_ID] = {"from": f"env:{place}"}
    imported.differently.append(
        f"{label}: its PublisherID, which keeps its publish addresses, is expected in {place}"
    )


def _add_subscription(imported: Imported, row: Row, names: tuple[str, str, str]) -> None:
    subscriber, name, event_type = names
    label = f"subscription {subscriber}/{name}"
    written = row.get("SubsFilter", "")
    text = written.translate(_STRAIGHT)
    try:
        if text:
            parse_filter(text)
    except FilterError as error:
        imported.impossible.append(
            f"{label}: its filter {written} is refused ({error}); write it anew"
        )
        row.leave_out()
        return
    endpoint = row.get("WebhookEndpoint", "")
    if endpoint.lower().startswith(_ORCHESTRATION):
        imported.impossible.append(
            f"{label}: {endpoint} is an orchestration, which Inturn does not have; "
            "let a service of yours subscribe instead"
        )
        row.leave_out()
        return
    if endpoint != INTERNAL and not endpoint.lower().partition("://")[0].endswith(
        ("http", "https")
    ):
        imported.impossible.append(f"{label}: {endpoint or 'no endpoint'} is no URL; give it one")
        row.leave_out()
        return
    if text != written:
        imported.differently.append(f"{label}: curly quotes of its filter are straight")
    status = _status(imported, row, label)
    entry = {
        "subscriber": subscriber,
        "name": name,
        "event_type": event_type,
        "header_filter_string": row.get("HeaderFilterString", ""),
        "filter": text,
        "endpoint": endpoint,
        "headers": _headers(imported, row, label),
        "status": status,
    }
    script = row.get("CustomScript", "")
    if (script or endpoint == INTERNAL) and not _add_script(imported, entry, script, label):
        return
    imported.add("subscriptions", entry)


def _status(imported: Imported, row: Row, label: str) -> str:
    """Return the status; INACTIVE for a status unknown to TeamForge: nothing is sent."""
    given = row.get("Status", "").upper() or "ACTIVE"
    if given in ("ACTIVE", "INACTIVE"):
        return given
    imported.differently.append(
        f"{label}: its Status {row['Status'][:50]} is neither Active nor Inactive; it is INACTIVE"
    )
    return "INACTIVE"


def _add_script(imported: Imported, entry: dict[str, Any], script: str, label: str) -> bool:
    """Add the script, or say why not; False if there is no subscription without it."""
    kind = imported.entries["event_types"][(entry["event_type"],)]["kind"]
    event_type = EventType(name=entry["event_type"], kind=kind)
    if reason := _script_refusal(script, event_type=event_type, endpoint=entry["endpoint"]):
        is_answer = entry["endpoint"] == INTERNAL
        outcome = "it is not taken over" if is_answer else "it is INACTIVE, without its script"
        imported.impossible.append(f"{label}: {reason}; {outcome}")
        entry["status"] = "INACTIVE"
        return not is_answer
    entry["script"] = script
    imported.differently += [
        f"{label}: its script includes {name}, which is not in the source; "
        "add it to common_scripts of the file, or create it before the plan"
        for name in dict.fromkeys(name for name, _ in included_names(script))
    ]
    return True


def _script_refusal(script: str, *, event_type: EventType, endpoint: str) -> str:
    # The name of a common script is no call.
    code = "\n".join(line for line in script.splitlines() if _INCLUDE not in line)
    if called := _CALLS.search(code):
        return f"its script uses {called[0]}, which Inturn does not have"
    names = [name for name, _ in included_names(script)]
    if script.count(_INCLUDE) > len(names):
        return f"its script has {_INCLUDE} beside other code, not on a line of its own"
    # The import reads no database: it may run where there is none.
    refused = refusals(
        {"event_type": event_type, "endpoint": endpoint, "script": script},
        common=Library(dict.fromkeys(names, "")),
    )
    found = refused.get("script") or refused.get("endpoint")
    return f"its script is refused ({found})" if found else ""


def _headers(imported: Imported, row: Row, label: str) -> dict[str, Any]:
    """Return the headers as references, because their values may be secrets."""
    given = row.get("HttpHeaders", "")
    try:
        pairs = (
            parse_source(given)
            if given.startswith("{")
            else dict(line.split(":", 1) for line in given.splitlines() if line.strip())
        )
    except ValueError:
        raise SourceError(
            f"{label}: HttpHeaders is neither JSON nor lines of Name: value."
        ) from None
    headers = {}
    for name, value in pairs.items():
        place = imported.reference(label.partition(" ")[2], "HEADER", name.strip())
        imported.secrets[place] = str(value).strip()
        headers[name.strip()] = {"from": f"env:{place}"}
        imported.differently.append(
            f"{label}: the value of its header {name.strip()} is expected in {place}"
        )
    return headers


def _warn_of_case(imported: Imported) -> None:
    first: dict[str, str] = {}
    for (name,) in imported.entries["event_types"]:
        other = first.setdefault(name.lower(), name)
        if other != name:
            imported.differently.append(
                f"event types {other} and {name} differ in case only; they are two"
            )
