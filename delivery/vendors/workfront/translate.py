"""The translation of a Workfront event subscription into an event type and a filter.

If that is impossible, it has the reasons. Workfront ignores errors in a filter, and then never
sends anything; here they are refused. A message is Workfront's original payload: `{"eventType",
"newState": {…}, "oldState": {…}, …}`. A condition is built as a syntax tree and written by
`normal_form`, so no value can end a string; it is then parsed, to find whether it is too long.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from delivery.vendors.workfront.comparisons import COMPARISONS, CannotSayError, nested_values
from delivery.vendors.workfront.encoding import BASE64_SCRIPT, is_base64
from subscriptions.filters import Condition, FilterError, normal_form, parse_filter
from subscriptions.filters.tree import And, Comparison, Operator, Or, Path, Root

NEW, OLD = "newState", "oldState"
EVENT_TYPES = ("CREATE", "UPDATE", "DELETE")
# The only version since January 2026. Workfront itself has refused v1 since July 2025.
VERSION = "v2"
OTHER_VERSION = (
    f"The only version is {VERSION}: Inturn sends a body as it was published. "
    f"Give {VERSION}, or leave this out."
)
MOST_GROUPS = 10
LEAST_IN_A_GROUP, MOST_IN_A_GROUP = 2, 5
# Those of Planning's approvals are in lower case.
_OBJ_CODE = re.compile(r"[A-Z][A-Z0-9_]{0,29}|approval(_stage(_participant)?)?")
_OF_FILTER = frozenset({"fieldName", "fieldValue", "comparison", "state"})
_OF_GROUP = frozenset({"type", "connector", "filters"})
_CONNECTORS: Mapping[str, type[And] | type[Or]] = {"AND": And, "OR": Or}


@dataclass(frozen=True, slots=True)
class Reason:
    """Why something cannot be translated: the field of the document, and advice."""

    field: str
    detail: str


@dataclass(slots=True)
class Translation:
    """The result of a translation.

    With `reasons` it failed, and the other fields have no meaning. `differences` describe cases in
    which Inturn decides differently.
    """

    event_type: str = ""
    filter: str = ""
    script: str = ""
    differences: list[str] = field(default_factory=list)
    reasons: list[Reason] = field(default_factory=list)


def translate_document(document: Mapping[str, Any]) -> Translation:
    """Translate a document of Workfront's API, without `url` and `authToken`."""
    found = Translation()
    found.reasons += _refused(document)
    if found.reasons:
        return found
    found.script = BASE64_SCRIPT if is_base64(document.get("base64Encoding")) else ""
    found.event_type = f"Workfront.{document['objCode']}.{document['eventType']}"
    conditions = [
        *_of_object(document),
        *_Filters(document["eventType"], found).conditions(document),
    ]
    if not found.reasons and conditions:
        found.filter = normal_form(_joined(And, conditions))
        found.reasons += _not_parsed(found.filter)
    return found


def _refused(document: Mapping[str, Any]) -> list[Reason]:
    """Return the errors outside the filters."""
    reasons = []
    code, event = document.get("objCode"), document.get("eventType")
    if not isinstance(code, str) or not _OBJ_CODE.fullmatch(code):
        reasons.append(
            Reason(
                "objCode",
                "Give the code of an object in capitals, such as PROJ or TASK, or approval, "
                "approval_stage or approval_stage_participant.",
            )
        )
    if event not in EVENT_TYPES:
        reasons.append(
            Reason("eventType", "Give CREATE, UPDATE or DELETE; Workfront itself removed SHARE.")
        )
    if not isinstance(document.get("objId") or "", str):
        reasons.append(
            Reason("objId", "Give the id of an object as a text, or leave it out for all objects.")
        )
    if is_base64(document.get("base64Encoding")) is None:
        reasons.append(Reason("base64Encoding", "Give true, false, or nothing."))
    if document.get("version") not in (None, VERSION):
        reasons.append(Reason("version", OTHER_VERSION))
    return reasons


def _of_object(document: Mapping[str, Any]) -> list[Condition]:
    """Return the condition for a single object by id.

    It compares the id in the new state, for a DELETE also in the old state.
    """
    if not document.get("objId"):
        return []
    conditions = [
        Comparison(_path(state, ("ID",)), Operator.EQUAL, document["objId"]) for state in (NEW, OLD)
    ]
    return [Or(tuple(conditions)) if document["eventType"] == "DELETE" else conditions[0]]


def _not_parsed(text: str) -> list[Reason]:
    try:
        parse_filter(text)
    except FilterError as error:
        return [Reason("filters", f"As a filter of Inturn it cannot be: {error}")]
    return []


class _Filters:
    """The filters of a document.

    The untranslatable filters are added to the reasons, to report all at once.
    """

    def __init__(self, event_type: str, into: Translation) -> None:
        self._event_type = event_type
        self._into = into
        self._groups = 0

    def conditions(self, document: Mapping[str, Any]) -> list[Condition]:
        filters = document.get("filters") or []
        connector = self._connector("filterConnector", document.get("filterConnector"))
        if not isinstance(filters, list):
            self._refuse("filters", "Give an array of filters.")
            return []
        found = [
            self._filter_or_group(f"filters.{place}", given) for place, given in enumerate(filters)
        ]
        if self._groups > MOST_GROUPS:
            self._refuse("filters", f"A subscription has at most {MOST_GROUPS} groups.")
        said = [condition for condition in found if condition is not None]
        return [_joined(connector, said)] if said else []

    def _filter_or_group(self, place: str, given: Any) -> Condition | None:
        is_group = isinstance(given, dict) and given.get("type") == "group"
        return self._group(place, given) if is_group else self._filter(place, given)

    def _group(self, place: str, given: Mapping[str, Any]) -> Condition | None:
        self._groups += 1
        connector = self._connector(f"{place}.connector", given.get("connector"))
        inner = given.get("filters")
        if not isinstance(inner, list) or not LEAST_IN_A_GROUP <= len(inner) <= MOST_IN_A_GROUP:
            self._refuse(
                f"{place}.filters",
                f"A group has {LEAST_IN_A_GROUP} to {MOST_IN_A_GROUP} filters in an array.",
            )
            return None
        self._refuse_unknown(place, given, known=_OF_GROUP)
        found = [
            self._filter(f"{place}.filters.{number}", inner_filter)
            for number, inner_filter in enumerate(inner)
        ]
        said = [condition for condition in found if condition is not None]
        return _joined(connector, said) if said else None

    def _filter(self, place: str, given: Any) -> Condition | None:
        if not isinstance(given, dict):
            self._refuse(
                place, "A filter is an object with fieldName, fieldValue, comparison and state."
            )
            return None
        if given.get("type") == "group":
            self._refuse(place, "A group stands in no other group.")
            return None
        # A filter outside a group may have a type.
        self._refuse_unknown(
            place, given, known=_OF_FILTER | ({"type"} if given.get("type") == "filter" else set())
        )
        try:
            return self._compared(given)
        except CannotSayError as cannot:
            self._refuse(f"{place}.{cannot.field}", cannot.detail)
        return None

    def _compared(self, given: Mapping[str, Any]) -> Condition:
        name, comparison = given.get("fieldName"), given.get("comparison") or "eq"
        if not isinstance(name, str) or not name or "\0" in name:
            raise CannotSayError("fieldName", "Give the name of a field.")
        if not isinstance(comparison, str) or comparison not in COMPARISONS:
            raise CannotSayError("comparison", f"Give one of {', '.join(COMPARISONS)}.")
        compare = COMPARISONS[comparison]
        state = self._state(given)
        if comparison == "changed":
            return compare.of((_path(NEW, (name,)), _path(OLD, (name,))), None)
        if "fieldValue" not in given:
            raise CannotSayError("fieldValue", f"Give the value that {comparison} compares with.")
        wanted = given["fieldValue"]
        leaves = nested_values(name, wanted)
        if compare.differs:
            for differs in filter(None, {compare.differs(value) for _, value in leaves}):
                self._into.differences.append(f"{name} {comparison}: {differs}")
        within = _joined(
            And, [compare.of((_path(state, steps),), value) for steps, value in leaves]
        )
        if isinstance(wanted, dict) and compare.of_element:
            return compare.of_element(within, _path(state, (name,)), wanted)
        return within

    def _state(self, given: Mapping[str, Any]) -> str:
        state = given.get("state") or NEW
        if state not in (NEW, OLD):
            raise CannotSayError("state", f"Give {NEW} or {OLD}.")
        if state == OLD and self._event_type == "CREATE":
            raise CannotSayError("state", f"A created object has no {OLD}.")
        return cast("str", state)

    def _connector(self, place: str, given: Any) -> type[And] | type[Or]:
        if given in (None, ""):
            return And
        if not isinstance(given, str) or given not in _CONNECTORS:
            self._refuse(place, "Give AND or OR.")
            return And
        return _CONNECTORS[given]

    def _refuse_unknown(
        self, place: str, given: Mapping[str, Any], *, known: frozenset[str] | set[str]
    ) -> None:
        for name in sorted(set(given) - known):
            self._refuse(
                f"{place}.{name}", f"There is no such field; known are {', '.join(sorted(known))}."
            )

    def _refuse(self, place: str, detail: str) -> None:
        self._into.reasons.append(Reason(place, detail))


def _path(state: str, steps: tuple[str, ...]) -> Path:
    return Path(Root.BODY, (state, *steps), is_text=True)


def _joined(connector: type[And] | type[Or], conditions: Sequence[Condition]) -> Condition:
    return conditions[0] if len(conditions) == 1 else connector(tuple(conditions))
