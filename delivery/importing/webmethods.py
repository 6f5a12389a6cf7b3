"""webMethods triggers, as a JSON list.

Its names are those of `pub.trigger:createTrigger` or of the trigger report:

    {"server": "https://is.example:5543",
     "triggers": [
        {"triggerName": "orders:handle",
         "properties": {"isConcurrent": "true", "maxExecutionThreads": "4", …},
         "conditions": [
            {"conditionName": "new", "serviceName": "orders:create", "joinType": "N/A",
             "messageTypeFilterPairs": [{"messageType": "orders:Created", "filter": "…"}]}]}]}

A trigger becomes a subscriber that is served by its first matching condition, a condition a
subscription for each of its document types. Where webMethods calls a service inside its server,
Inturn sends a request: to the condition's `endpoint`, or to `<server>/invoke/<service>`, by which
Integration Server makes services callable.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from delivery.importing.import_result import Imported, SourceError
from delivery.importing.webmethods_filters import CannotTranslateError, translated_filter
from delivery.importing.webmethods_joins import join_of
from delivery.importing.webmethods_properties import Properties, policy_of, subscriber_of

_EXPECTED = (
    'A JSON list of triggers was expected: {"server": "https://…", '
    '"triggers": [{"triggerName": …, "properties": {…}, '
    '"conditions": [{"conditionName": …, "serviceName": …, "joinType": …, '
    '"messageTypeFilterPairs": [{"messageType": …, "filter": …}]}]}]}.'
)
# With one document type a condition has no join, whatever it says.
_ANY = ("", "N/A", "NONE", "OR", "ANY")


def import_webmethods(text: str) -> Imported:
    """Raise SourceError for anything but such a list."""
    try:
        content = json.loads(text)
    except json.JSONDecodeError as error:
        raise SourceError(f"The source is not JSON: {error}.") from None
    given = content if isinstance(content, dict) else {"triggers": content}
    triggers, server = given.get("triggers"), given.get("server", "")
    if not isinstance(triggers, list) or not triggers or not isinstance(server, str):
        raise SourceError(_EXPECTED)
    imported = Imported()
    for trigger in triggers:
        _Trigger(imported, trigger, server=server.rstrip("/")).add()
    imported.differently += _OF_ALL
    return imported


class _Trigger:
    def __init__(self, imported: Imported, trigger: Any, *, server: str) -> None:
        if not isinstance(trigger, dict) or not _text(trigger, "triggerName", "name"):
            raise SourceError(_EXPECTED)
        self._imported = imported
        self._server = server
        self._name = _named(imported, _text(trigger, "triggerName", "name"), what="subscriber")
        self._trigger = trigger
        self._properties = Properties.of(trigger, label=f"trigger {self._name}")
        self._position = 0

    def add(self) -> None:
        subscriber = subscriber_of(self._properties, name=self._name)
        if not self._imported.add("subscribers", subscriber):
            self._imported.impossible.append(
                f"trigger {self._name}: another trigger has this name; "
                "only the first was taken over"
            )
            return
        policy = policy_of(self._properties)
        if isinstance(policy, dict):
            self._imported.add("policies", policy)
        for condition in _list(self._trigger, "conditions"):
            self._add_condition(condition, policy if isinstance(policy, str) else policy["name"])
        self._imported.differently += self._properties.differently
        self._imported.impossible += self._properties.impossible

    def _add_condition(self, condition: Mapping[str, Any], policy: str) -> None:
        name = _text(condition, "conditionName", "name") or f"condition-{self._position + 1}"
        label = f"trigger {self._name}, condition {name}"
        pairs = list(_pairs(condition))
        join = _text(condition, "joinType").upper()
        if not pairs:
            raise SourceError(f"{label}: it has no document type.")
        is_join = len(pairs) > 1 and join not in _ANY
        joined = (
            join_of(self._imported, condition, join, pairs=pairs, label=label) if is_join else {}
        )
        if joined is None:
            return
        endpoint = self._endpoint(condition)
        if not endpoint:
            self._imported.impossible.append(
                f"{label}: nothing says where its service "
                f"{_text(condition, 'serviceName', 'service')} is called; "
                'give "server" or the condition\'s "endpoint"'
            )
            return
        for document_type, text in pairs:
            fields = {"endpoint": endpoint, "policy": policy, **joined}
            self._add_subscription(name, (document_type, text), fields)

    def _add_subscription(
        self, name: str, pair: tuple[str, str], fields: Mapping[str, Any]
    ) -> None:
        document_type, text = pair
        event_type = _named(self._imported, document_type, what="event type")
        base = self._imported.name_of(name, what="subscription")
        taken = self._imported.entries["subscriptions"]
        unique = base if (self._name, base) not in taken else f"{base}-{event_type}"
        label = f"subscription {self._name}/{unique}"
        self._position += 1
        try:
            wanted = translated_filter(text) if text.strip() else ""
        except CannotTranslateError as error:
            self._imported.impossible.append(f"{label}: its filter {text} ({error}); write it anew")
            return
        if wanted:
            self._imported.differently.append(f"{label}: its filter {text} is {wanted}")
        self._imported.add("event_types", {"name": event_type})
        entry = {
            "subscriber": self._name,
            "name": unique,
            "event_type": event_type,
            "filter": wanted,
            "position": self._position,
            **fields,
            **self._properties.dedup,
        }
        if not self._imported.add("subscriptions", entry):
            self._imported.impossible.append(
                f"{label}: the source has it twice; only the first was taken over"
            )

    def _endpoint(self, condition: Mapping[str, Any]) -> str:
        service = _text(condition, "serviceName", "service")
        invoked = (
            f"{self._server}/invoke/{service.replace(':', '/')}" if self._server and service else ""
        )
        return _text(condition, "endpoint") or invoked


def _named(imported: Imported, text: str, *, what: str) -> str:
    """A namespace name, `folder.sub:name`, with a dot for the colon."""
    if ":" in text and _COLONS not in imported.differently:
        imported.differently.append(_COLONS)
    return imported.name_of(text.replace(":", "."), what=what)


def _pairs(condition: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    names = ("messageTypeFilterPairs", "documentTypeFilterPairs")
    for pair in next((found for name in names if (found := _list(condition, name))), []):
        document_type = _text(pair, "messageType", "documentType")
        if not document_type:
            raise SourceError(_EXPECTED)
        yield document_type, _text(pair, "filter", "filterSource")


def _list(given: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    found = given.get(name) or []
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
        raise SourceError(_EXPECTED)
    return found


def _text(given: Mapping[str, Any], *names: str) -> str:
    found = next((given[name] for name in names if given.get(name) is not None), "")
    return found.strip() if isinstance(found, str) else str(found)


_COLONS = (
    "names: a dot stands for the colon of webMethods, which names have not here: "
    "folder.sub:name is folder.sub.name"
)
_OF_ALL = (
    (
        "errors: a 5xx answer or none is a transient error and tried again; 4xx and 3xx are fatal. "
        "Let each service answer so"
    ),
    (
        "dead letters: a document that matches no condition is kept, "
        "with a journal entry UNMATCHED; one that fails is reported as Inturn.Delivery.Failed, "
        "to the publisher's errors_to"
    ),
)
