"""Workfront's login: a manage key becomes the sessionID of later calls."""

import logging

import pytest
from django.test import Client

from subscriptions.models import Scope
from tests.support import factories
from tests.unit.delivery.vendors.workfront_calls import PLACE, WANTED

pytestmark = pytest.mark.django_db

LOGIN = "/attask/api/v20.0/login"
FORM = "application/x-www-form-urlencoded"


def key(scope: Scope = Scope.MANAGE) -> str:
    return factories.api_key(scope)[1]


@pytest.mark.parametrize("path", [LOGIN, "/attask/api/login", "/attask/api/v15/login/"])
@pytest.mark.parametrize("method", ["get", "post"])
def test_a_client_that_logs_in_first_calls_with_its_session(path: str, method: str) -> None:
    client, given = Client(), key()
    answer = getattr(client, method)(f"{path}?apiKey={given}")
    assert (answer.status_code, answer.json()["data"]["sessionID"]) == (200, given)
    assert answer["Cache-Control"] == "no-store"
    made = client.post(PLACE, WANTED, content_type="application/json", headers={"sessionID": given})
    assert made.status_code == 201


@pytest.mark.parametrize(
    ("query", "body", "content_type"),
    [
        ("?username=admin&password={}", "", FORM),
        ("", "username=admin&password={}", FORM),
        ("", "apiKey={}", FORM),
        ("?username=admin", '{"password": "{}"}', "application/json"),
    ],
)
def test_name_and_password_log_in_too(query: str, body: str, content_type: str) -> None:
    given = key()
    answer = Client().post(
        LOGIN + query.replace("{}", given), body.replace("{}", given), content_type=content_type
    )
    assert (answer.status_code, answer.json()["data"]["sessionID"]) == (200, given)


@pytest.mark.parametrize(
    ("query", "status"),
    [("", 400), ("?apiKey=", 400), ("?apiKey=wrong", 401), ("?password=x", 401)],
)
def test_a_wrong_login_has_an_error_in_place_of_data(query: str, status: int) -> None:
    answer = Client().post(LOGIN + query)
    assert (answer.status_code, set(answer.json())) == (status, {"error"})
    assert answer.json()["error"]["message"]


def test_a_key_that_may_not_manage_is_refused() -> None:
    answer = Client().get(f"{LOGIN}?apiKey={key(Scope.READ)}")
    assert (answer.status_code, "manage" in answer.json()["error"]["message"]) == (403, True)


def test_the_key_stays_out_of_the_log(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        Client().post(f"{LOGIN}?apiKey=not-a-key")
    assert "not-a-key" not in "".join(str(record.__dict__) for record in caplog.records)


@pytest.mark.parametrize(
    "path", ["/attask/api/v20.0/project", "/attask/login", "/api/v1/login", "/attask/x/inbox"]
)
def test_other_addresses_are_not_teamforges(path: str) -> None:
    answer = Client().post(path, b"{}", content_type="application/json")
    assert (answer.status_code, answer["Content-Type"]) == (404, "application/problem+json")
