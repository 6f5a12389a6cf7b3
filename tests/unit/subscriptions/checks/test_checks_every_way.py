"""Each rule about a configured object refuses the same field with the same sentence, in every way.

The ways are the console's form, REST and the configuration document. Workfront's calls and the
importers stand below, with the rules that they can break.
"""

import json
from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.db.models import CheckConstraint, Model
from django.forms.models import model_to_dict
from django.test import Client

from delivery.management.importing.teamforge import import_teamforge
from subscriptions.models import (
    CommonScript,
    EventType,
    Kind,
    Policy,
    Subscriber,
    Subscription,
)
from tests.support import factories
from tests.unit.delivery.api.client import Caller, caller, fields_of, refused
from tests.unit.delivery.configuration.document.documents import document, faults
from tests.unit.delivery.console.subscription_form import errors
from tests.unit.delivery.vendors.workfront_calls import PLACE, WANTED

Values = dict[str, Any]
Refused = dict[str, list[str]]

PATH = "$$->'Body'->>'id'"
HOOK = "https://127.0.0.1/hook"
PULL: Values = {"mode": "PULL", "endpoint": ""}
JOIN: Values = {"join_mode": "ALL", "join_name": "order"}
IN_PLACE: Values = {"on_unreachable": "IN_PLACE"}
RETRY_LANE: Values = {"on_unreachable": "RETRY_LANE"}
BREAKER: Values = {"breaks_circuit": True}
LISTED: Values = {"retry_schedule": "LISTED", "retry_waits": "5,300"}
AT_LEAST_1 = "greater than or equal to 1"

SUBSCRIPTIONS: list[tuple[Values, str, str]] = [
    ({"name": "-x"}, "name", "begin with a letter or digit"),
    ({"event_type": "Inturn.Callback"}, "event_type", "cannot be subscribed to"),
    ({"endpoint": ""}, "endpoint", "A PUSH subscription needs an endpoint"),
    ({"endpoint": "ftp://example.com/"}, "endpoint", "begins with https:// or http://"),
    ({"endpoint": "https://10.0.0.1/hook"}, "endpoint", "10.0.0.1 is refused"),
    ({"endpoint": "https://user:word@example.com/"}, "endpoint", "as the subscription's auth"),
    ({"probe_url": "PATCH:https://127.0.0.1/"}, "probe_url", "without a method"),
    ({"probe_url": "https://10.0.0.1/"}, "probe_url", "10.0.0.1 is refused"),
    ({"filter": "$$->'Body'->>'a' = 'b'\nAND NOT"}, "filter", "(line 2, column"),
    ({"header_filter_string": "a\x07b"}, "header_filter_string", "control character"),
    ({"takes_unmatched": True, "event_type": "Work"}, "takes_unmatched", "of kind QUEUE"),
    (
        {"takes_unmatched": True, "event_type": "Asked"},
        "takes_unmatched",
        "if no earlier one matches",
    ),
    ({"script": "var a = 1;\n  var = 2;"}, "script", "line 2: SyntaxError"),
    ({"script": "$include$none"}, "script", "there is no common script none"),
    ({"script": "1;", "event_type": "Work"}, "script", "of kind QUEUE"),
    ({"script": "1;", "event_type": "Asked"}, "script", "The endpoint answers"),
    ({"endpoint": "webr://", "event_type": "Asked"}, "script", "a script makes the answer"),
    ({"endpoint": "webr://", "script": "1;"}, "endpoint", "webr:// is for SYNC"),
    ({"headers": {"Host": "x"}}, "headers", "Host is set by Inturn itself"),
    ({"headers": {"X-A": "ü"}}, "headers", "is not ASCII"),
    (
        {"headers": {"Authorization": "x"}, "forward_authorization": True, "event_type": "Asked"},
        "auth",
        "the publisher's credential is sent",
    ),
    ({"forward_authorization": True}, "forward_authorization", "Only SYNC hands one on"),
    ({"forward_headers": ["cookie"]}, "forward_headers", "never sent along"),
    ({"forward_headers": ["a*b"]}, "forward_headers", "is no header name"),
    ({"timeout_seconds": 0}, "timeout_seconds", AT_LEAST_1),
    ({"timeout_seconds": 121}, "timeout_seconds", "less than or equal to 120"),
    ({"dedup_mode": "PATH"}, "dedup_path", "Give the path"),
    ({"dedup_mode": "PATH", "dedup_path": "$$->"}, "dedup_path", "a path is wanted"),
    ({"dedup_mode": "KEY", "event_type": "Work"}, "dedup_mode", "of kind QUEUE"),
    ({"dedup_mode": "KEY", "event_type": "Asked"}, "dedup_mode", "of kind SYNC"),
    ({"dedup_mode": "KEY", "dedup_window_seconds": 0}, "dedup_window_seconds", AT_LEAST_1),
    (
        {"dedup_mode": "KEY", "dedup_window_seconds": 32 * 86_400},
        "dedup_window_seconds",
        "less than or equal to 2678400",
    ),
    ({"join_mode": "ALL"}, "join_name", "Give the join a name"),
    (JOIN | {"join_path": "order"}, "join_path", "a path is wanted"),
    (JOIN | {"join_seconds": 0}, "join_seconds", AT_LEAST_1),
    (JOIN | {"event_type": "Work"}, "join_mode", "only messages of TOPIC event types"),
    (JOIN | PULL, "join_mode", "Use a PUSH subscription"),
    (PULL | {"event_type": "Work"}, "mode", "one endpoint of a group"),
    (PULL | {"event_type": "Asked"}, "mode", "a mailbox does not answer"),
    (PULL | {"max_receives": 0}, "max_receives", AT_LEAST_1),
    (PULL | {"max_receives": 1001}, "max_receives", "less than or equal to 1000"),
]
# The page does not show these fields then, and the form forgets their values.
HIDDEN: list[tuple[Values, str, str]] = [
    ({"dedup_path": PATH}, "dedup_path", "Only dedup_mode PATH has a path"),
    ({"dedup_mode": "KEY", "dedup_path": PATH}, "dedup_path", "Only dedup_mode PATH has a path"),
    ({"join_name": "order"}, "join_name", "Only a join has it"),
    ({"join_path": PATH}, "join_path", "Only a join has it"),
    ({"max_receives": 3}, "max_receives", "of a PULL subscription"),
    (PULL | {"endpoint": HOOK}, "endpoint", "until they are fetched"),
    (PULL | {"headers": {"X-A": "1"}}, "headers", "the message's own headers"),
    (PULL | {"forward_headers": ["x-a"]}, "forward_headers", "the message's own headers"),
    (PULL | {"forward_authorization": True}, "forward_authorization", "waits for an answer"),
    (PULL | {"timeout_seconds": 5}, "timeout_seconds", "by visibility"),
    (PULL | {"lets_pass_on_timeout": True}, "lets_pass_on_timeout", "waits for an answer"),
    (PULL | {"script": "1;"}, "script", "as it was published"),
    (PULL | {"probe_url": HOOK}, "probe_url", "no lane that could be suspended"),
    (PULL | {"policy": "strict"}, "policy", "max_receives bounds"),
]
POLICIES: list[tuple[Values, str, str]] = [
    ({"success_codes": "404"}, "success_codes", "cannot count as success"),
    ({"success_codes": "200,"}, "success_codes", "cannot count as success"),
    ({"pause_seconds": 90}, "pause_seconds", "must not be more than pause_max_seconds"),
    ({"pause_seconds": 0}, "pause_seconds", AT_LEAST_1),
    (
        RETRY_LANE | {"on_server_error": "IN_PLACE"},
        "on_server_error",
        "on_unreachable is RETRY_LANE and",
    ),
    ({"when_used_up": "SUSPEND"}, "when_used_up", "choose IN_PLACE"),
    (
        RETRY_LANE | {"when_used_up": "SUSPEND", "max_attempts": 3},
        "when_used_up",
        "choose IN_PLACE",
    ),
    (IN_PLACE | {"when_used_up": "SUSPEND"}, "max_attempts", "after how many attempts"),
    ({"max_attempts": 3}, "max_attempts", "RETRY_LANE and IN_PLACE"),
    (
        {"on_unavailable": "IN_PLACE", "blocks_when_overloaded": True, "max_attempts": 3},
        "max_attempts",
        "RETRY_LANE and IN_PLACE",
    ),
    (IN_PLACE | {"retry_schedule": "EXPONENTIAL"}, "retry_schedule", "choose FIXED"),
    (
        {"on_client_error": "SKIP", "on_rate_limited": "SKIP", "suspends_on_reject": True},
        "suspends_on_reject",
        "Nothing is rejected",
    ),
    (LISTED, "retry_schedule", "choose one of them"),
    (RETRY_LANE | {"retry_schedule": "LISTED"}, "retry_waits", "Say how long"),
    (RETRY_LANE | {"retry_waits": "5"}, "retry_waits", "choose LISTED"),
    (RETRY_LANE | LISTED | {"retry_waits": "5;300"}, "retry_waits", "is no wait"),
    ({"freezes_when_gone": True}, "freezes_when_gone", "switch breaks_circuit on"),
    (BREAKER | {"freeze_failures": 1999}, "freeze_failures", "at least breaker_failures, 2000"),
    (
        BREAKER | {"freeze_failures_at_once": 1999},
        "freeze_failures_at_once",
        "freeze_failures, 2000",
    ),
]
SUBSCRIBERS: list[tuple[Values, str, str]] = [
    ({"name": "Inturn.Own"}, "name", "are Inturn's own"),
    ({"max_in_flight": 0}, "max_in_flight", AT_LEAST_1),
    ({"max_in_flight": 1001}, "max_in_flight", "less than or equal to 1000"),
    (
        {"max_queued_to_send": 5, "refill_level": 5},
        "refill_level",
        "must be less than max_queued_to_send",
    ),
    ({"application": "-"}, "application", "begin with a letter or digit"),
    ({"queue_id": "a/b"}, "queue_id", "as in the queue's old address"),
    ({"headers": {"Host": "x"}}, "headers", "Host is set by Inturn itself"),
]
EVENT_TYPES: list[tuple[Values, str, str]] = [
    ({"name": "Inturn.Own"}, "name", "are Inturn's own"),
    ({"content_type": "json"}, "content_type", "Give a media type"),
    ({"content_type": "a/b; c"}, "content_type", "Give a media type"),
    ({"kind": "SYNC", "durability": "VOLATILE"}, "durability", "answered at once"),
    ({"kind": "SYNC", "ttl_seconds": 60}, "ttl_seconds", "answered at once"),
    ({"ttl_seconds": 0}, "ttl_seconds", AT_LEAST_1),
    ({"errors_when": "GROUP"}, "errors_when", "Only a QUEUE has groups"),
    ({"forward_headers": ["cookie"]}, "forward_headers", "never sent along"),
    ({"sample": {"\0": 1}}, "sample", "the database cannot store"),
    ({"json_schema": "text"}, "json_schema", "is an object here"),
    ({"json_schema": {"type": "objekt"}}, "json_schema", "objekt"),
    ({"json_schema": {"$ref": "https://example.com/s"}}, "json_schema", "outside"),
    ({"json_schema": {"pattern": "("}}, "json_schema", "pattern"),
]
COMMON_SCRIPTS: list[tuple[Values, str, str]] = [
    ({"name": "-x"}, "name", "begin with a letter or digit"),
    ({"text": "var a;\nvar = 1;"}, "text", "line 2: SyntaxError"),
    ({"text": "$include$none"}, "text", "there is no common script none"),
]
MODELS: dict[str, type[Model]] = {
    "subscriptions": Subscription,
    "policies": Policy,
    "subscribers": Subscriber,
    "event_types": EventType,
    "common_scripts": CommonScript,
}
BASE: dict[str, Values] = {
    "subscriptions": {
        "name": "orders",
        "subscriber": "crm",
        "event_type": "Created",
        "endpoint": HOOK,
    },
    "policies": {"name": "mine"},
    "subscribers": {"name": "abc"},
    "event_types": {"name": "Orders"},
    "common_scripts": {"name": "dates", "text": "1;"},
}
# The page has other fields for these.
FORM_FIELDS = {"header_lines": "headers", "auth_type": "auth"}


def cases(*tables: tuple[str, list[tuple[Values, str, str]]]) -> list[Any]:
    return [
        pytest.param(section, values, field, said, id=f"{section}-{field}-{number}")
        for section, table in tables
        for number, (values, field, said) in enumerate(table)
    ]


ALL = cases(
    ("subscriptions", SUBSCRIPTIONS),
    ("policies", POLICIES),
    ("subscribers", SUBSCRIBERS),
    ("event_types", EVENT_TYPES),
    ("common_scripts", COMMON_SCRIPTS),
)


@pytest.fixture
def manager(db: None) -> Caller:
    """A caller of REST, where the objects that a subscription refers to are stored."""
    factories.event_type("Created")
    factories.event_type("Work", kind=Kind.QUEUE)
    factories.event_type("Asked", kind=Kind.SYNC)
    EventType.objects.get_or_create(name="Inturn.Callback")
    factories.subscriber("crm")
    return caller()


def by_rest(manager: Caller, section: str, values: Values) -> Refused:
    address = section.replace("_", "-")
    problem = refused(manager.post(address, BASE[section] | values), 400, "invalid")
    found: Refused = {}
    for error in problem["errors"]:
        found.setdefault(error["field"], []).append(error["detail"])
    return found


def by_document(section: str, values: Values) -> Refused:
    found: Refused = {}
    for fault in faults(document(**{section: [BASE[section] | values]})):
        found.setdefault(fault.field, []).append(fault.detail)
    return found


def by_form(ann: Client, section: str, values: Values) -> Any:
    """Return the answer to the form of a new object; the browser sends all of its fields."""
    model = MODELS[section]
    defaults = model_to_dict(model())
    given = defaults | dict(BASE[section] | values)
    if section == "subscriptions":
        given |= {"policy": values.get("policy", "teamforge"), "auth_type": "none"}
        related: dict[str, type[Model]] = {
            "subscriber": Subscriber,
            "event_type": EventType,
            "policy": Policy,
        }
        for field, other in related.items():
            given[field] = other._default_manager.get(name=given[field]).pk
    headers = given.pop("headers", None) or {}
    given["header_lines"] = [f"{name}: {value}" for name, value in headers.items()]
    sent = {name: typed(name, value) for name, value in given.items()}
    sent = {name: value for name, value in sent.items() if value is not None}
    return ann.post(f"/admin/subscriptions/{model._meta.model_name}/add/", sent)


def typed(name: str, value: Any) -> Any:
    """Return the text that a browser sends for a value; None if it sends nothing."""
    if name in ("sample", "json_schema"):
        return None if value is None else json.dumps(value)
    match value:
        case None | False:
            return None
        case True:
            return "on"
        case list():
            return "\n".join(value)
        case _:
            return value


@pytest.mark.parametrize(("section", "values", "field", "said"), ALL)
def test_a_value_is_refused_alike_in_every_way(
    manager: Caller, ann: Client, section: str, values: Values, field: str, said: str
) -> None:
    rest = by_rest(manager, section, values)
    assert set(rest) == {field}
    assert said in " ".join(rest[field])
    assert by_document(section, values) == rest
    form = errors(by_form(ann, section, values))
    assert {FORM_FIELDS.get(name, name): list(found) for name, found in form.items()} == rest


@pytest.mark.parametrize(("section", "values", "field", "said"), cases(("subscriptions", HIDDEN)))
def test_a_field_without_effect_is_refused_and_forgotten_where_the_page_hides_it(
    manager: Caller, ann: Client, section: str, values: Values, field: str, said: str
) -> None:
    rest = by_rest(manager, section, values)
    assert set(rest) == {field}
    assert said in " ".join(rest[field])
    assert by_document(section, values) == rest
    assert by_form(ann, section, values).status_code == 302
    column = Subscription._meta.get_field(field)
    unset = "teamforge" if field == "policy" else column.get_default()  # type: ignore[union-attr]
    stored = getattr(Subscription.objects.get(), field)
    assert (stored.name if field == "policy" else stored or unset) in (unset, {"type": "none"})


@pytest.mark.parametrize("section", sorted(BASE))
def test_the_values_that_the_cases_change_are_accepted(
    manager: Caller, ann: Client, section: str
) -> None:
    assert by_form(ann, section, {}).status_code == 302
    MODELS[section]._default_manager.filter(name=BASE[section]["name"]).delete()
    assert manager.post(section.replace("_", "-"), BASE[section]).status == 201


@pytest.mark.parametrize(
    "values",
    [
        RETRY_LANE,
        RETRY_LANE | {"retry_schedule": "EXPONENTIAL", "max_attempts": 12},
        IN_PLACE | {"max_attempts": 5},
        IN_PLACE | {"max_attempts": 5, "when_used_up": "SUSPEND"},
        IN_PLACE | {"suspends_on_reject": True},
        RETRY_LANE | {"on_unavailable": "IN_PLACE", "blocks_when_overloaded": True},
        {"on_redirect": "REJECT"},
        RETRY_LANE | LISTED,
        IN_PLACE | LISTED,
        BREAKER | {"freezes_when_gone": True},
        BREAKER | {"breaker_failures": 5, "freeze_failures": 5, "freeze_failures_at_once": 5},
        {"freeze_failures": 1, "freeze_failures_at_once": 1},
    ],
)
def test_consistent_values_of_a_policy_are_accepted(manager: Caller, values: Values) -> None:
    assert manager.post("policies", BASE["policies"] | values).status == 201


def test_only_a_redirect_can_be_unsupported(manager: Caller) -> None:
    """The page does not offer it."""
    values = {"on_client_error": "UNSUPPORTED"}
    rest = by_rest(manager, "policies", values)
    assert rest == by_document("policies", values)
    assert "Choose REJECT" in rest["on_client_error"][0]


def test_every_check_constraint_has_a_readable_reason(manager: Caller) -> None:
    """Whoever violates one of the table's constraints gets the reason before, with its field."""
    set_by_inturn = {
        "subscription_filter_has_identity",
        "subscription_ends_holding",
        "subscriber_ends_holding",
    }
    violated: set[str] = set()
    for section, table in (
        ("subscriptions", [*SUBSCRIPTIONS, *HIDDEN]),
        ("policies", POLICIES),
        ("subscribers", SUBSCRIBERS),
        ("event_types", EVENT_TYPES),
    ):
        model = MODELS[section]
        for values, _, _ in table:
            own = {name: values[name] for name in values if name not in ("event_type", "policy")}
            endpoint = {"endpoint": HOOK} if section == "subscriptions" else {}
            row = model(**(endpoint | own))
            for constraint in model._meta.constraints:
                if isinstance(constraint, CheckConstraint) and not _holds(constraint, row):
                    violated.add(constraint.name)
    assert violated | set_by_inturn == {
        constraint.name
        for section in ("subscriptions", "policies", "subscribers", "event_types")
        for constraint in MODELS[section]._meta.constraints
        if isinstance(constraint, CheckConstraint)
    }


def _holds(constraint: Any, row: Model) -> bool:
    try:
        constraint.validate(type(row), row)
    except ValidationError:
        return False
    return True


def test_two_subscriptions_of_a_sync_event_type_with_one_filter_are_refused(
    manager: Caller, ann: Client
) -> None:
    asked = {"event_type": "Asked"}
    manager.post("subscriptions", BASE["subscriptions"] | asked)
    again = asked | {"name": "again"}
    answer = manager.post("subscriptions", BASE["subscriptions"] | again)
    reason = refused(answer, 409, "same-filter")["detail"]
    assert by_document("subscriptions", again) == {"filter": [reason]}
    assert errors(by_form(ann, "subscriptions", again)) == {"filter": [reason]}


def test_workfronts_calls_refuse_the_same_under_their_names(manager: Caller) -> None:
    factories.event_type("Workfront.PROJ.UPDATE", kind=Kind.QUEUE)
    values = {"script": "1;", "event_type": "Workfront.PROJ.UPDATE"}
    (reason,) = by_rest(manager, "subscriptions", values)["script"]
    problem = refused(manager.post(PLACE, WANTED | {"base64Encoding": True}), 400)
    assert fields_of(problem) == {"base64Encoding"}
    assert reason in problem["detail"]
    address = "https://10.0.0.1/hook"
    (reason,) = by_rest(manager, "subscriptions", {"endpoint": address})["endpoint"]
    assert reason in refused(manager.post(PLACE, WANTED | {"url": address}), 400)["detail"]


@pytest.mark.parametrize(
    ("kind", "values", "field"),
    [
        ("SYNC", {"script": "var = 2;", "endpoint": "webr://"}, "script"),
        ("SYNC", {"script": "", "endpoint": "webr://"}, "script"),
        ("SYNC", {"script": "1;", "endpoint": HOOK}, "script"),
        ("QUEUE", {"script": "1;", "endpoint": HOOK}, "script"),
        ("TOPIC", {"script": "1;", "endpoint": "webr://"}, "endpoint"),
    ],
)
def test_importers_report_the_same(manager: Caller, kind: str, values: Values, field: str) -> None:
    factories.event_type("Old", kind=Kind(kind))
    (reason,) = by_rest(manager, "subscriptions", {"event_type": "Old", **values})[field]
    row = {
        "EventName": "Old",
        "EventType": kind,
        "SubscriberName": "crm",
        "WebhookEndpoint": values["endpoint"],
        "CustomScript": values["script"],
    }
    (line,) = import_teamforge(json.dumps([row])).impossible
    assert reason in line
