"""webMethods triggers, as a JSON list.

The names are those of `pub.trigger:createTrigger` or of the trigger report:

    {"server": "https://is.example:5543", "client": "orders-is",
     "triggers": [
        {"triggerName": "orders:handle",
         "properties": {"isConcurrent": "true", "maxExecutionThreads": "4", …},
         "conditions": [
            {"conditionName": "new", "serviceName": "orders:create", "joinType": "N/A",
             "messageTypeFilterPairs": [{"messageType": "orders:Created", "filter": "…"}]}]}]}

A trigger becomes a subscriber served by the first matching condition, a condition a subscription
for each document type. Where webMethods calls a service inside the server, Inturn sends a request:
to the condition's `endpoint`, or to `<server>/invoke/<service>`, by which Integration Server makes
services callable. A document delivered to the server goes to all triggers there, so their
subscribers share an `application`: the source's `client`, or the server's host.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from delivery.management.importing.import_result import Imported, SourceError
from delivery.management.importing.source import parse_source
from delivery.management.importing.unread import SourceObject
from delivery.management.importing.webmethods_filters import CannotTranslateError, translated_filter
from delivery.management.importing.webmethods_joins import join_of
from delivery.management.importing.webmethods_properties import Properties, policy_of, subscriber_of

_EXPECTED = (
    'A JSON list of triggers was expected: {"server": "https://…", '
    '"triggers": [{"triggerName": …, "properties": {…}, '
    '"conditions": [{"conditionName": …, "serviceName": …, "joinType": …, '
    '"messageTypeFilterPairs": [{"messageType": …, "filter": …}]}]}]}.'
)
# With a single document type a condition has no join, whatever it says.
_ANY = ("", "N/A", "NONE", "OR", "ANY")


def import_webmethods(text: str) -> Imported:
    """Raise SourceError for anything but such a list."""
    content = parse_source(text)
    imported = Imported()
    given = imported.source_object(
        content if isinstance(content, dict) else {"triggers": content}, noun="key"
    )
    triggers, server = given.get("triggers"), given.get("server", "")
    if not isinstance(triggers, list) or not triggers or not isinstance(server, str):
        raise SourceError(_EXPECTED)
    client = _text(given, "client") or urlsplit(server).hostname or ""
    application = imported.name_of(client, what="application") if client else ""
    for trigger in triggers:
        _Trigger(imported, trigger, server=server.rstrip("/"), application=application).add()
    imported.differently += _OF_ALL
    return imported


class _Trigger:
    def __init__(self, imported: Imported, trigger: Any, *, server: str, application: str) -> None:
        if not isinstance(trigger, dict) or not _text(trigger, "triggerName", "name"):
            raise SourceError(_EXPECTED)
        self._imported = imported
        self._server = server
        self._application = application
        self._trigger = imported.source_object(trigger, noun="key of a trigger")
        self._name = _named(
            imported, _text(self._trigger, "triggerName", "name"), what="subscriber"
        )
        self._properties = Properties.of(imported, self._trigger, label=f"trigger {self._name}")
        self._position = 0
        self._conditions = _ConditionOrder()

    def add(self) -> None:
        subscriber = subscriber_of(self._properties, name=self._name)
        if self._application:
            subscriber["application"] = self._application
        conditions = self._objects(self._trigger, "conditions", noun="key of a condition")
        if not self._imported.add("subscribers", subscriber):
            self._imported.impossible.append(
                f"trigger {self._name}: another trigger has this name; "
                "only the first was taken over"
            )
            return
        policy = policy_of(self._properties)
        if isinstance(policy, dict):
            self._imported.add("policies", policy)
        for condition in conditions:
            self._add_condition(condition, policy if isinstance(policy, str) else policy["name"])
        self._imported.differently += self._properties.differently
        self._imported.impossible += self._properties.impossible
        self._hold(subscriber)

    def _hold(self, subscriber: dict[str, Any]) -> None:
        """Hold the subscriber if a condition is missing: a later one would get its documents."""
        lines = self._conditions.consequences()
        if lines and subscriber["status"] == "ACTIVE":
            subscriber["status"] = "HELD"
        self._imported.impossible += [
            f"trigger {self._name}: {line} It is {subscriber['status']}: "
            "write the condition anew at its position, then make the subscriber ACTIVE"
            for line in lines
        ]

    def _add_condition(self, condition: SourceObject, policy: str) -> None:
        name = _text(condition, "conditionName", "name") or f"condition-{self._position + 1}"
        label = f"trigger {self._name}, condition {name}"
        pairs = list(self._pairs(condition))
        join = _text(condition, "joinType").upper()
        if not pairs:
            raise SourceError(f"{label}: it has no document type.")
        is_join = len(pairs) > 1 and join not in _ANY
        # Without a join the time-out has no effect.
        condition.drop("joinTimeOut", "joinTimeout", "joinExpires")
        joined = (
            join_of(self._imported, condition, join, pairs=pairs, label=label) if is_join else {}
        )
        endpoint = self._endpoint(condition)
        if not endpoint:
            self._imported.impossible.append(
                f"{label}: nothing says where its service "
                f"{_text(condition, 'serviceName', 'service')} is called; "
                'give "server" or the condition\'s "endpoint"'
            )
        if not endpoint or joined is None:
            self._conditions.add(name, [document_type for document_type, _ in pairs], taken=False)
            return
        for document_type, text in pairs:
            fields = {"endpoint": endpoint, "policy": policy, **joined}
            is_taken = self._add_subscription(name, (document_type, text), fields)
            self._conditions.add(name, [document_type], taken=is_taken)

    def _add_subscription(
        self, name: str, pair: tuple[str, str], fields: Mapping[str, Any]
    ) -> bool:
        """Add the subscription; False, reported, if the filter cannot be translated."""
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
            return False
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
        return True

    def _endpoint(self, condition: Mapping[str, Any]) -> str:
        service = _text(condition, "serviceName", "service")
        invoked = (
            f"{self._server}/invoke/{service.replace(':', '/')}" if self._server and service else ""
        )
        return _text(condition, "endpoint") or invoked

    def _pairs(self, condition: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        names = ("messageTypeFilterPairs", "documentTypeFilterPairs")
        noun = "key of a document type"
        found = [self._objects(condition, name, noun=noun) for name in names]
        for pair in next(filter(None, found), []):
            document_type = _text(pair, "messageType", "documentType")
            if not document_type:
                raise SourceError(_EXPECTED)
            yield document_type, _text(pair, "filter", "filterSource")

    def _objects(self, given: Mapping[str, Any], name: str, *, noun: str) -> list[SourceObject]:
        found = given.get(name) or []
        if not isinstance(found, list) or not all(isinstance(item, dict) for item in found):
            raise SourceError(_EXPECTED)
        return [self._imported.source_object(item, noun=noun) for item in found]


@dataclass(slots=True)
class _ConditionOrder:
    """The conditions of a trigger in their order, and who gets those of a missing condition.

    Only the first matching condition gets a document. So the documents of a condition not taken
    over are not lost: the next condition for their type gets them, wrongly.
    """

    _added: list[tuple[str, str, bool]] = field(default_factory=list)

    def add(self, name: str, document_types: Sequence[str], *, taken: bool) -> None:
        """Add a condition for these document types; `taken`: it was taken over."""
        self._added += [(name, document_type, taken) for document_type in document_types]

    def consequences(self) -> list[str]:
        """Return a sentence for each document type of a missing condition."""
        return list(self._consequences())

    def _consequences(self) -> Iterator[str]:
        for place, (name, document_type, is_taken) in enumerate(self._added):
            if is_taken:
                continue
            later = dict.fromkeys(
                other
                for other, same_type, is_there in self._added[place + 1 :]
                if is_there and same_type == document_type
            )
            outcome = (
                f"the later condition {' or '.join(later)} would get its documents {document_type}."
                if later
                else f"no later condition is for its documents {document_type}."
            )
            yield f"its condition {name} is missing, and {outcome}"


def _named(imported: Imported, text: str, *, what: str) -> str:
    """A namespace name, `folder.sub:name`, with a dot for the colon."""
    if ":" in text and _COLONS not in imported.differently:
        imported.differently.append(_COLONS)
    return imported.name_of(text.replace(":", "."), what=what)


def _text(given: Mapping[str, Any], *names: str) -> str:
    values = [given.get(name) for name in names]
    found = next((value for value in values if value is not None), "")
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
