"""TeamForge's envelope for errors that its views do not answer, or only while something is away."""

import logging
from typing import Any

import psycopg
import pytest
from django.conf import settings
from django.db import connection
from django.test import Client

from config.web.refusals import refusal_of
from delivery.calls import slots
from delivery.database.connections import connection_parameters
from delivery.incoming.problems import Problem
from delivery.models import Message
from subscriptions.models import Kind
from tests.support import factories
from tests.support.read_only_database import set_read_only
from tests.unit.delivery.api.client import ApiAnswer, refused
from tests.unit.delivery.vendors.jenkins import EVENT, Jenkins, enveloped, jenkins

# The answers to a database that is away need a connection of their own.
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def plugin() -> Jenkins:
    factories.event_type(EVENT)
    return jenkins()


def sent(method: str, path: str, **headers: str) -> ApiAnswer:
    client = Client(raise_request_exception=False)
    return ApiAnswer(
        client.generic(method, path, b"{}", content_type="application/json", headers=headers)
    )


@pytest.mark.parametrize("method", ["POST", "GET"])
@pytest.mark.parametrize(
    "path",
    [
        "/v4/inbox",
        "/inbox/",
        "/webr/v4/inbox/{event}",
        "/v4/inbox//{id}",
        "/v4/inbox/{event}/{id}/x",
    ],
)
def test_an_unknown_address_below_inbox_is_the_400_that_its_clients_explain(
    plugin: Jenkins, method: str, path: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    envelope = enveloped(sent(method, path.format(event=EVENT, id=plugin.id)), 400)
    assert "/inbox/{eventName}/{publisherId}" in envelope["ErrorText"]
    assert plugin.id not in caplog.text


def test_a_malformed_host_is_refused_in_the_envelope(
    plugin: Jenkins, caplog: pytest.LogCaptureFixture
) -> None:
    for path in (f"/v4/inbox/{EVENT}/{plugin.id}", "/login"):
        envelope = enveloped(sent("POST", path, host="no host"), 400)
        assert "check host and address" in envelope["ErrorText"]
    assert plugin.id not in caplog.text


def test_an_internal_error_is_500_in_the_envelope(
    plugin: Jenkins, monkeypatch: pytest.MonkeyPatch
) -> None:
    fails: Any = lambda *_: 1 / 0  # noqa: E731
    monkeypatch.setattr("delivery.vendors.teamforge.views.publish_draft", fails)
    envelope = enveloped(sent("POST", f"/v4/inbox/{EVENT}/{plugin.id}"), 500)
    assert envelope["ErrorText"] == "Inturn failed; its log has the reason."


@pytest.mark.parametrize(
    "path", ["/v4/inbox/Some.Event/some-id", "/webr/login", "/inbox/Some.Event"]
)
def test_what_the_web_server_refuses_has_the_envelope_and_its_headers(path: str) -> None:
    problem = Problem(503, "no-room", "Repeat it.", headers={"Retry-After": "1"})
    answer = ApiAnswer(refusal_of(path, problem))
    assert enveloped(answer, 503)["ErrorText"] == "Repeat it."
    assert answer.headers["Retry-After"] == "1"


@pytest.mark.parametrize(
    "path", ["/api/v1/messages:batch", "/api/v1/inbox", "/event/queue/inbox/next", "/admin/login/"]
)
def test_other_addresses_keep_the_problem_document(path: str) -> None:
    refused(ApiAnswer(refusal_of(path, Problem(413, "too-large", "Too long."))), 413, "too-large")


def test_a_read_only_database_is_503_with_the_time_to_try_again(plugin: Jenkins) -> None:
    set_read_only("on")
    connection.close()
    try:
        answer = plugin.publish()
    finally:
        set_read_only("off")
        connection.close()
    assert "read-only now" in enveloped(answer, 503)["ErrorText"]
    assert int(answer.headers["Retry-After"]) > 0
    assert not Message.objects.exists()
    enveloped(plugin.publish(), 201)


def test_a_lost_database_is_503_with_the_time_to_try_again(plugin: Jenkins) -> None:
    # The connection that the request will use has ended.
    end_session(connection.connection.info.backend_pid)
    try:
        answer = plugin.publish()
    finally:
        connection.close()
    assert "The database does not answer" in enveloped(answer, 503)["ErrorText"]
    assert int(answer.headers["Retry-After"]) > 0
    enveloped(plugin.publish(), 201)


def test_one_sync_call_too_many_is_503_with_the_time_to_try_again() -> None:
    factories.subscription(event_type=factories.event_type(EVENT, kind=Kind.SYNC))
    plugin = jenkins()
    limit = settings.ENVIRONMENT.web_threads * 3 // 4
    turns = slots.slots_of("sync", limit)
    assert all(turns.acquire(blocking=False) for _ in range(limit))
    try:
        answer = plugin.publish()
    finally:
        turns.release(limit)
    assert "So many SYNC calls" in enveloped(answer, 503)["ErrorText"]
    assert int(answer.headers["Retry-After"]) > 0


def end_session(pid: int) -> None:
    with psycopg.connect(**connection_parameters(), autocommit=True) as own:
        own.execute("SELECT pg_terminate_backend(%s, 10000)", [pid])
