"""The pages that are served without signing in, and the clients that may read them."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from django.conf import settings
from django.test import Client

from config import api_reference, api_schema
from subscriptions.models import Scope
from tests.support import factories

pytestmark = pytest.mark.django_db


def metrics(**headers: str) -> int:
    return (
        Client(REMOTE_ADDR=headers.pop("remote", "127.0.0.1"))
        .get("/metrics", headers=headers)
        .status_code
    )


def test_metrics_are_for_this_machine() -> None:
    assert metrics() == metrics(remote="::1") == 200
    assert metrics(remote="192.0.2.7") == 401
    assert metrics(**{"X-Forwarded-For": "127.0.0.1"}) == 401


@pytest.mark.parametrize(
    "header", ["Forwarded", "Via", "X-Real-IP", "X-Forwarded-Host", "X-Forwarded-Port", "Client-IP"]
)
def test_metrics_are_closed_to_a_proxy_on_this_machine(header: str) -> None:
    assert metrics(**{header: "x"}) == 401


def test_metrics_are_closed_to_a_proxy_that_only_passes_the_host_on() -> None:
    assert metrics(Host="broker.example.com") == 401
    assert metrics(Host="localhost:8000") == metrics(Host="[::1]:8000") == 200


@pytest.mark.parametrize("url", ["https://broker.example.com", "http://10.0.0.7:8000"])
def test_metrics_of_a_public_address_are_for_keys(
    monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    """The plainest nginx passes on neither the host nor the client's address."""
    monkeypatch.setattr(settings, "ENVIRONMENT", replace(settings.ENVIRONMENT, base_url=url))
    _, key = factories.api_key(Scope.READ)
    assert metrics(Host="127.0.0.1:8000") == metrics() == 401
    assert metrics(Host="127.0.0.1:8000", Authorization=f"Bearer {key}") == 200


@pytest.mark.parametrize("url", ["http://LOCALHOST:8000", "https://[::1]:8443", "http://127.0.0.1"])
def test_metrics_of_a_local_address_need_no_key(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setattr(settings, "ENVIRONMENT", replace(settings.ENVIRONMENT, base_url=url))
    assert metrics() == 200


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
@pytest.mark.parametrize("host", ["10.42.8.201:8000", "pod.internal", "[fe80::1]:8000", "a_b", ""])
def test_probes_are_answered_whatever_host_they_ask_for(path: str, host: str) -> None:
    assert Client().get(path, headers={"host": host}).status_code == 200
    assert Client().get("/admin/login/", headers={"host": "10.42.8.201"}).status_code == 400


def test_metrics_by_an_address_are_for_keys() -> None:
    _, key = factories.api_key(Scope.READ)
    address = {"Host": "10.42.8.201:8000"}
    assert metrics(remote="10.42.8.9", **address) == 401
    assert metrics(remote="10.42.8.9", Authorization=f"Bearer {key}", **address) == 200


@pytest.mark.parametrize(
    ("scope", "status"), [(Scope.READ, 200), (Scope.MANAGE, 200), (Scope.FETCH, 401)]
)
def test_metrics_are_for_keys_that_may_read(scope: Scope, status: int) -> None:
    _, key = factories.api_key(scope)
    assert metrics(remote="192.0.2.7", Authorization=f"Bearer {key}") == status


def test_an_unknown_key_reads_no_metrics() -> None:
    assert metrics(remote="192.0.2.7", Authorization="Bearer x") == 401


def test_the_description_is_generated_once_however_many_want_it() -> None:
    api_schema._generated.cache_clear()
    api_reference._page.cache_clear()

    def status(number: int) -> int:
        return Client().get(("/api/schema/", "/api/docs/")[number % 2]).status_code

    with ThreadPoolExecutor(8) as clients:
        assert set(clients.map(status, range(8))) == {200}
    assert api_schema._generated.cache_info().misses == 1
