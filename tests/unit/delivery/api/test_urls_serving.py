"""The pages alongside the API, and the answer to an unexpected error."""

import re
from unittest.mock import patch

import pytest
from django.db import InterfaceError, OperationalError, connection, transaction
from django.db.migrations.recorder import MigrationRecorder
from django.test import Client

from config.api_schema import schema_document
from subscriptions.models import Scope
from tests.support import factories
from tests.unit.delivery.api.client import ApiAnswer, Caller, caller, refused

pytestmark = pytest.mark.django_db


def test_healthz_answers_without_the_database() -> None:
    with patch("django.db.backends.utils.CursorWrapper.execute", side_effect=OperationalError):
        assert Client().get("/healthz").status_code == 200


def test_readyz_follows_the_database() -> None:
    assert Client().get("/readyz").json() == {"status": "ready"}
    with patch("django.db.backends.utils.CursorWrapper.execute", side_effect=OperationalError):
        answer = ApiAnswer(Client().get("/readyz"))
    refused(answer, 503, "database-away")
    assert "Retry-After" in answer.headers


def test_readyz_fails_without_migrations() -> None:
    from config.web import health

    health._require_migrations.cache_clear()
    with transaction.atomic():
        MigrationRecorder(connection).record_unapplied("auth", "0001_initial")
        refused(ApiAnswer(Client().get("/readyz")), 503, "not-migrated")
        transaction.set_rollback(True)
    assert Client().get("/readyz").status_code == 200


def test_metrics_are_served_for_prometheus() -> None:
    assert b"inturn_http_request_seconds_count" in Client().get("/metrics").content


def test_the_root_leads_to_the_console() -> None:
    assert Client().get("/").headers["Location"] == "/admin/"


def test_the_api_describes_itself() -> None:
    assert b"openapi: 3" in Client().get("/api/schema/").content
    page = Client().get("/api/docs/")
    assert page.status_code == 200
    # The content security policy allows no script and no style within a page.
    assert b"<style" not in page.content
    assert page.content.count(b"<script>") == 0


def test_the_reference_has_each_call_once_and_no_dead_link() -> None:
    page = Client().get("/api/docs/").text
    calls = [call for methods in schema_document()["paths"].values() for call in methods.values()]
    for call in calls:
        assert page.count(f'<details id="{call["operationId"]}"') == 1, call["operationId"]
    targets = set(re.findall(r'href="#([^"]+)"', page))
    assert targets <= set(re.findall(r'id="([^"]+)"', page))


@pytest.mark.parametrize("error", [OperationalError("gone"), InterfaceError("closed")])
def test_a_lost_database_is_503_at_every_view(error: Exception) -> None:
    client = Client(raise_request_exception=False)
    with patch("django.middleware.common.CommonMiddleware.process_request", side_effect=error):
        answer = ApiAnswer(client.get("/api/v1/event-types"))
    refused(answer, 503, "database-away")
    assert int(answer.headers["Retry-After"]) > 0


def test_a_fault_of_ours_is_500_without_a_traceback() -> None:
    _, key = factories.api_key()
    client = Client(raise_request_exception=False, headers={"authorization": f"Bearer {key}"})
    with patch(
        "delivery.api.base.resource.Resource.list", side_effect=RuntimeError("secret detail")
    ):
        answer = ApiAnswer(client.get("/api/v1/event-types"))
    refused(answer, 500, "unexpected")
    assert b"secret detail" not in answer.content


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE"])
def test_the_api_never_answers_with_a_html_page(method: str) -> None:
    client = Client(enforce_csrf_checks=True)
    for path in ["/api/", "/api/v1", "/api/v1/nothing", "/api/v2/event-types"]:
        refused(ApiAnswer(client.generic(method, path)), 404, "not-found")


def test_outside_the_api_errors_are_plain_text() -> None:
    answer = Client().get("/nothing")
    assert answer.status_code == 404
    assert answer.headers["Content-Type"].startswith("text/plain")


def test_another_publishers_key_finds_no_message(db: None) -> None:
    message = factories.message()
    for scope in (Scope.PUBLISH, Scope.FETCH):
        assert caller(scope).get(f"messages/{message.public_id}").status in (403, 404)
    refused(Caller(None).get(f"messages/{message.public_id}"), 401)
