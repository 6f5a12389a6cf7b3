"""A key gives the rights of its scope, until it ends."""

from datetime import timedelta

import psycopg
import pytest
from django.db import connection
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from delivery.database.connections import connection_parameters
from subscriptions.models import ApiKey, Scope
from tests.support import factories
from tests.unit.delivery.api.client import Caller, caller, refused


@pytest.mark.parametrize(
    "header", ["", "Bearer", "Bearer ", "Bearer wrong", "Basic YTpi", "inturn_x", "Bearer \xe9"]
)
def test_a_missing_or_unknown_key_is_401_with_a_challenge(db: None, header: str) -> None:
    answer = Caller(None).ask(
        "GET", "event-types", headers={"authorization": header} if header else {}
    )
    refused(answer, 401)
    assert answer.headers["WWW-Authenticate"] == 'Bearer realm="inturn"'


def test_a_missing_key_is_answered_with_the_remedy(db: None) -> None:
    detail = refused(Caller(None).get("event-types"), 401)["detail"]
    assert detail == "Send a key, with the header Authorization: Bearer <key>."


def test_an_expired_or_revoked_key_is_reported_as_such(db: None) -> None:
    now = timezone.now()
    expired = caller(expires_at=now - timedelta(seconds=1))
    assert "expired" in refused(expired.get("event-types"), 401)["detail"]
    revoked = caller(revoked_at=now)
    assert "revoked" in refused(revoked.get("event-types"), 401)["detail"]


@pytest.mark.parametrize(
    ("scope", "path", "status"),
    [
        (Scope.MANAGE, "event-types", 200),
        (Scope.MANAGE, "messages", 200),
        (Scope.MANAGE, "deliveries", 200),
        (Scope.MANAGE, "lanes", 200),
        (Scope.READ, "messages", 200),
        (Scope.READ, "deliveries", 200),
        (Scope.READ, "lanes", 200),
        (Scope.READ, "event-types", 403),
        (Scope.READ, "subscriptions", 403),
        (Scope.READ, "keys", 403),
        (Scope.PUBLISH, "event-types", 403),
        # Its publisher's own; see `test_reach.py`.
        (Scope.PUBLISH, "messages", 200),
        (Scope.PUBLISH, "deliveries", 200),
        (Scope.PUBLISH, "lanes", 403),
        (Scope.FETCH, "event-types", 403),
        (Scope.FETCH, "messages", 403),
        (Scope.FETCH, "messages/msg_1", 403),
    ],
)
def test_a_scope_opens_its_own_views(db: None, scope: Scope, path: str, status: int) -> None:
    answer = caller(scope).get(path)
    assert answer.status == status
    if status == 403:
        refused(answer, 403, "wrong-scope")


@pytest.mark.parametrize("scope", [Scope.MANAGE, Scope.READ, Scope.FETCH])
def test_only_a_publish_key_publishes(db: None, scope: Scope) -> None:
    factories.event_type("A")
    refused(caller(scope).publish("A"), 403, "wrong-scope")
    refused(caller(scope).post("messages:batch", []), 403, "wrong-scope")


@pytest.mark.parametrize("path", ["lanes/a/retry", "lanes/a/skip", "deliveries/1/cancel"])
def test_a_read_key_changes_nothing(db: None, path: str) -> None:
    refused(caller(Scope.READ).post(path), 403, "wrong-scope")


def test_the_last_use_is_noted_once_a_minute(
    db: None, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    row, key = factories.api_key()
    with django_assert_num_queries(3):
        Caller(key).get("event-types")
    with django_assert_num_queries(2):
        Caller(key).get("event-types")
    ApiKey.objects.filter(pk=row.pk).update(last_used_at=timezone.now() - timedelta(minutes=2))
    with django_assert_num_queries(3):
        Caller(key).get("event-types")
    row.refresh_from_db()
    assert row.last_used_at is not None
    assert timezone.now() - row.last_used_at < timedelta(seconds=30)


@pytest.mark.django_db(transaction=True)
def test_a_call_after_the_database_ended_the_connection_is_answered() -> None:
    manager = caller()
    assert manager.get("event-types").status == 200
    backend = connection.connection.info.backend_pid
    with psycopg.connect(**connection_parameters(), autocommit=True) as other:
        other.execute("SELECT pg_terminate_backend(%s, 20000)", [backend])
    assert manager.get("event-types").status == 200
