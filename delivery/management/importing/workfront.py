"""Workfront's event subscriptions, as answered by the list call.

The answer is `{"subscriptions": […], "meta": …}`. Several pages in a JSON list are taken, too, and
the list of the deprecated call, whose names have underscores. Workfront masks tokens, so the
document has a reference for each; an unmasked token becomes the value.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from delivery.management.importing.import_result import Imported, SourceError
from delivery.management.importing.source import parse_source
from delivery.vendors.workfront.subscribing import POLICY, TIMEOUT_SECONDS, subscriber_name
from delivery.vendors.workfront.translate import Translation, translate_document
from subscriptions.values.endpoints import EndpointError, parse_url

_EXPECTED = 'The answer of Workfront\'s list call was expected: {"subscriptions": […], "meta": …}.'
_UNDERSCORE = re.compile(r"_([a-z])")
# The answers are read by names with capitals, but for these.
_KEPT = ("subscription_url", "date_created", "date_modified", "frozen_at", "disabled_at")
# Of no effect on Workfront's sending; Workfront tries a disabled URL again by itself.
_WITHOUT_EFFECT = ("customerId", "date_created", "date_modified", "dateVersionUpdated")
_URL_WITHOUT_EFFECT = ("url", "date_created", "successes", "failures", "disabled_at", "disabledAt")


def import_workfront(text: str) -> Imported:
    """Raise SourceError for anything but such an answer."""
    content = parse_source(text)
    imported = Imported()
    for document in _documents(imported, content):
        _add(imported, document)
    if imported.entries["subscriptions"]:
        imported.differently.append(
            "Workfront's calls do not list imported subscriptions; "
            "let a client that manages its subscriptions create them by those calls instead"
        )
    return imported


def _documents(imported: Imported, content: Any) -> Iterator[dict[str, Any]]:
    pages = content if isinstance(content, list) else [content]
    total, found = 0, 0
    for page in pages:
        if not isinstance(page, dict):
            raise SourceError(_EXPECTED)
        is_one = "objCode" in page or "obj_code" in page
        answer = imported.source_object(
            {"subscriptions": [page]} if is_one else page, noun="key of the answer"
        )
        listed, meta = answer.get("subscriptions"), answer.get("meta")
        if not isinstance(listed, list) or not all(isinstance(item, dict) for item in listed):
            raise SourceError(_EXPECTED)
        announced = meta.get("total_count") if isinstance(meta, dict) else None
        total = max(total, announced if isinstance(announced, int) else 0)
        found += len(listed)
        yield from map(_with_capitals, listed)
    if not found:
        raise SourceError(_EXPECTED)
    if found < total:
        imported.impossible.append(
            f"{total - found:,} more subscriptions: the source has {found:,} of {total:,}; "
            "put the other pages into the list"
        )


def _with_capitals(document: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name if name in _KEPT else _UNDERSCORE.sub(lambda found: found[1].upper(), name): value
        for name, value in document.items()
    }


def _add(imported: Imported, given: dict[str, Any]) -> None:
    label = f"subscription {given.get('id') or given.get('url')}"
    if given.get("version") == "v1":
        del given["version"]
        imported.differently.append(
            f"{label}: it had version v1; bodies are sent as they are published"
        )
    document = imported.source_object(given, noun="key")
    document.drop("id", *_WITHOUT_EFFECT)
    translation = translate_document(document)
    if translation.reasons:
        document.leave_out()
    imported.impossible += [
        f"{label}: {reason.field}: {reason.detail}" for reason in translation.reasons
    ]
    url = document.get("url")
    try:
        parse_url(url if isinstance(url, str) else "")
    except EndpointError as error:
        imported.impossible.append(f"{label}: url: {error}")
        document.leave_out()
        return
    if not translation.reasons:
        _add_translated(imported, document, translation)


def _add_translated(
    imported: Imported, document: Mapping[str, Any], translation: Translation
) -> None:
    subscriber = subscriber_name(document["url"])
    id = str(document.get("id") or len(imported.entries["subscriptions"]) + 1)
    name = imported.name_of(f"workfront-{id}", what="subscription")
    label = f"subscription {subscriber}/{name}"
    imported.differently += [f"{label}: {difference}" for difference in translation.differences]
    imported.add("event_types", {"name": translation.event_type})
    imported.add("subscribers", {"name": subscriber})
    entry = {
        "subscriber": subscriber,
        "name": name,
        "event_type": translation.event_type,
        "filter": translation.filter,
        "endpoint": document["url"],
        "policy": POLICY,
        "auth": {"type": "bearer", "token": _token(imported, document, label)},
        "timeout_seconds": TIMEOUT_SECONDS,
        "status": _status(imported, document, label),
    }
    if translation.script:
        entry["script"] = translation.script
        imported.differently.append(f"{label}: a script makes its base64 encoding")
    if not imported.add("subscriptions", entry):
        imported.impossible.append(
            f"{label}: the source has it twice; only the first was taken over"
        )


def _token(imported: Imported, document: Mapping[str, Any], label: str) -> dict[str, str]:
    place = imported.reference(label.partition(" ")[2], "TOKEN")
    token = document.get("authToken")
    if isinstance(token, str) and token and "*" not in token:
        imported.secrets[place] = token
        imported.differently.append(f"{label}: its token is expected in {place}")
    else:
        imported.differently.append(
            f"{label}: Workfront masks its token; give it in {place}, from your own records"
        )
    return {"from": f"env:{place}"}


def _status(imported: Imported, document: Mapping[str, Any], label: str) -> str:
    given = document.get("subscription_url")
    url = imported.source_object(
        given if isinstance(given, dict) else {}, noun="key of subscription_url"
    )
    url.drop(*_URL_WITHOUT_EFFECT)
    frozen_at = url.get("frozen_at") or url.get("frozenAt")
    if not frozen_at:
        return "ACTIVE"
    imported.differently.append(
        f"{label}: Workfront froze its URL at {frozen_at} and sends nothing there, "
        "so it is INACTIVE"
    )
    return "INACTIVE"
