"""Wrong input for the configuration: a problem document, and nothing stored."""

from typing import Any

import orjson
import pytest
from django.db import connection
from psycopg import sql

from subscriptions.models import (
    ConfigurationChange,
    EventType,
    Policy,
    Publisher,
    Subscriber,
    Subscription,
)
from tests.support import factories
from tests.support.quick import STRIDE
from tests.unit.delivery.api.client import Caller, fields_of, refused

VALID: dict[str, dict[str, Any]] = {
    "event-types": {
        "name": "New",
        "kind": "TOPIC",
        "content_type": "application/json",
        "description": "d",
        "json_schema": {"type": "object"},
        "durability": "GUARANTEED",
        "ttl_seconds": None,
    },
    "publishers": {"name": "new", "description": "d", "event_types": ["Made"]},
    "subscribers": {
        "name": "new",
        "description": "d",
        "processing": "SERIAL",
        "max_in_flight": 1,
        "max_queued_to_send": 100,
        "refill_level": 20,
        "match_mode": "FIRST",
        "headers": {"X-A": "b"},
    },
    "policies": {
        "name": "new",
        "description": "d",
        "copy_of": "strict",
        "success_codes": "200,201",
        "on_unreachable": "BLOCK",
        "on_unavailable": "SKIP",
        "on_server_error": "SKIP",
        "on_rate_limited": "REJECT",
        "on_client_error": "REJECT",
        "on_redirect": "UNSUPPORTED",
        "in_doubt": "HOLD",
        "blocks_when_overloaded": True,
        "pause_seconds": 2,
        "pause_max_seconds": 60,
        "retry_after_max_seconds": 600,
        "retry_schedule": "FIXED",
        "retry_seconds": 2.5,
        "retry_waits": "",
        "retry_jitter": 0.1,
        "max_attempts": None,
        "when_used_up": "FAIL",
        "suspends_on_reject": True,
        "probe_seconds": 30,
        "breaks_circuit": True,
        "freezes_when_gone": False,
        "breaker_percent": 50,
        "breaker_attempts": 20,
        "breaker_failures": 100,
        "breaker_probe_seconds": 60,
        "freeze_failures": 200,
        "freeze_hours": 1,
        "freeze_failures_at_once": 300,
    },
    "subscriptions": {
        "name": "new",
        "subscriber": "made",
        "event_type": "Made",
        "mode": "PUSH",
        "endpoint": "https://127.0.0.1/hook",
        "header_filter_string": "proj1",
        "filter": "$$->'Body'->>'a' = 'b'",
        "policy": "strict",
        "headers": {"X-A": "b"},
        "auth": {"type": "basic", "username": "u", "password": "p"},
        "timeout_seconds": 5,
        "status": "INACTIVE",
        "position": 3,
    },
    "keys": {"name": "n", "scope": "read", "expires_at": "2990-01-01T00:00:00Z"},
    "publishers/made/keys": {"name": "n", "expires_at": None},
    "subscribers/made/keys": {"name": "n", "expires_at": None},
}
WRONG: list[Any] = [
    {"a": {"b": 1}},
    {},
    [],
    [[1]],
    [None],
    True,
    False,
    -1,
    1.5,
    2**31,
    2**63,
    "",
    " ",
    "5",
    "true",
    "null",
    "a\0b",
    "a\r\nX-Injected: b",
    "\x7f\x1b[31m",
    "x" * 100_000,
    "../../etc/passwd",
    "ünïcödé 漢字",
    None,
]
TABLES = [EventType, Publisher, Subscriber, Policy, Subscription, ConfigurationChange]


@pytest.fixture
def configured(manager: Caller) -> Caller:
    factories.event_type("Made")
    factories.publisher("made")
    factories.subscriber("made")
    return manager


def counts() -> tuple[int, ...]:
    counted = sql.SQL("(SELECT count(*) FROM {})")
    parts = [counted.format(sql.Identifier(table._meta.db_table)) for table in TABLES]
    with connection.cursor() as cursor:
        cursor.execute(sql.SQL("SELECT {}").format(sql.SQL(", ").join(parts)))
        (row,) = cursor.fetchall()
    return tuple(row)


@pytest.mark.parametrize("path", VALID)
def test_correct_values_are_accepted(configured: Caller, path: str) -> None:
    assert configured.post(path, VALID[path]).status == 201


@pytest.mark.parametrize(
    ("path", "field"), [(path, field) for path, body in VALID.items() for field in body]
)
def test_no_field_accepts_a_value_of_another_type(
    configured: Caller, path: str, field: str
) -> None:
    before = counts()
    # Other fields begin elsewhere.
    for value in WRONG[len(field) % STRIDE :: STRIDE]:
        answer = configured.post(path, VALID[path] | {field: value})
        if answer.status == 201:
            # Some values are right for some fields; an accepted value must be stored unchanged.
            assert type(answer.body.get(field)) in (type(value), type(None)), (value, answer)
            configured.delete(f"{path}/{answer.body.get('id', answer.body['name'])}")
            before = counts()
            continue
        problem = refused(answer, 400)
        assert any(name.split(".")[0] in (field, "auth", "") for name in fields_of(problem)), (
            value,
            problem,
        )
        assert counts() == before, value


@pytest.mark.parametrize("path", VALID)
def test_an_unknown_field_is_named(configured: Caller, path: str) -> None:
    before = counts()
    problem = refused(configured.post(path, VALID[path] | {"colour": "red"}), 400, "invalid")
    assert fields_of(problem) == {"colour"}
    assert counts() == before


@pytest.mark.parametrize("path", VALID)
def test_read_only_fields_are_refused(configured: Caller, path: str) -> None:
    assert fields_of(
        refused(configured.post(path, VALID[path] | {"created_at": "2020-01-01T00:00:00Z"}), 400)
    ) == {"created_at"}


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"null",
        b"[]",
        b'"text"',
        b"17",
        b'{"name": NaN}',
        b'{"name": "\xff\xfe"}',
        b"\xef\xbb\xbf{}",
        b'{"name": "\\ud800"}',
        b'{"\\udfff": 1}',
        b"[" * 100_000,
        b'{"a":' * 5_000 + b"1" + b"}" * 5_000,
        b'{"name": ' + b"9" * 5_000 + b"}",
        b"name=new&kind=TOPIC",
        b"\x00",
    ],
)
def test_a_body_that_is_no_json_object_is_refused(configured: Caller, body: bytes) -> None:
    before = counts()
    for path in [*VALID, "filters/check", "messages:batch"]:
        answer = configured.ask("POST", path, body)
        if path.endswith("/keys") and body == b"":
            # All fields of a key have defaults.
            assert answer.status == 201, path
            before = counts()
            continue
        assert answer.status == (403 if path == "messages:batch" else 400), path
        refused(answer, answer.status)
        assert counts() == before, path


def test_a_body_that_is_too_long_is_413(configured: Caller) -> None:
    body = orjson.dumps({"name": "New", "sample": "x" * 1024 * 1024})
    refused(configured.ask("POST", "event-types", body), 413, "too-large")


@pytest.mark.parametrize(
    "content_type", ["text/plain", "application/x-www-form-urlencoded", "", "nonsense"]
)
def test_a_body_of_another_type_is_415(configured: Caller, content_type: str) -> None:
    refused(
        configured.ask("POST", "event-types", b'{"name": "New"}', content_type=content_type), 415
    )


@pytest.mark.parametrize(
    "query",
    [
        "colour=red",
        "limit=0",
        "limit=501",
        "limit=-1",
        "limit=x",
        "limit=",
        "limit=99999999999999999999999",
        "limit=1&limit=2",
        "after=%00",
        "offset=3",
    ],
)
def test_a_wrong_query_parameter_is_named(manager: Caller, query: str) -> None:
    for path in ("event-types", "publishers", "subscribers", "subscriptions", "policies", "keys"):
        problem = refused(manager.get(f"{path}?{query}"), 400, "invalid")
        assert fields_of(problem) == {query.partition("=")[0]}, path


def test_unknown_parameters_are_refused(manager: Caller) -> None:
    refused(manager.post("event-types?force=true", {"name": "A"}), 400)
    assert not EventType.objects.filter(name="A").exists()


@pytest.mark.parametrize(
    "path",
    [
        "nothing",
        "event-types/",
        "event-types/none",
        "event-types/%00",
        "event-types/a%0d%0ab",
        "event-types/" + "x" * 300,
        "subscriptions/x",
        "subscriptions/999999999999999999",
        "subscriptions/9999999999999999999999",
        "publishers/none/keys",
        "messages/msg_x",
        "messages/999999999999999999",
        "deliveries/0",
        "lanes/none",
        "lanes/queue:9999",
        "lanes/nonsense:1",
    ],
)
def test_a_missing_object_is_a_404_document(manager: Caller, path: str) -> None:
    refused(manager.get(path), 404, "not-found")


@pytest.mark.parametrize("method", ["PUT", "OPTIONS", "TRACE", "PATCH", "NONSENSE"])
def test_a_method_that_is_not_there_is_a_405_document(manager: Caller, method: str) -> None:
    refused(manager.ask(method, "event-types"), 405, "method-not-allowed")


def test_an_accept_header_changes_nothing(manager: Caller) -> None:
    answer = manager.ask("GET", "event-types", headers={"accept": "text/html"})
    assert answer.content_type == "application/json"


def test_a_wrong_host_is_a_problem_document(manager: Caller) -> None:
    refused(manager.ask("GET", "event-types", headers={"host": "evil.example"}), 400)
