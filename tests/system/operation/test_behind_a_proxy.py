"""`up` under another host name, behind a proxy that speaks TLS."""

from collections.abc import Iterator

import pytest
import requests

from tests.support.product import Product
from tests.support.rest import SECONDS
from tests.system.operation.installation import eventually

pytestmark = pytest.mark.slow

HOST = "broker.example.com"
PASSWORD = "a-password-of-nobody"


@pytest.fixture(scope="module")
def proxied(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    product = Product(
        tmp_path_factory.mktemp("proxied"),
        INTURN_BASE_URL=f"https://{HOST}",
        INTURN_ALLOWED_HOSTS="other.example.com",
        INTURN_ADMIN_PASSWORD=PASSWORD,
    )
    try:
        product.start()
        yield product
    finally:
        product.kill_all()


def ask(product: Product, path: str, **headers: str) -> requests.Response:
    return product.rest.ask("GET", f"{product.rest.base_url}{path}", headers=headers)


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
@pytest.mark.parametrize("host", [HOST, "other.example.com", "localhost", "127.0.0.1"])
def test_the_server_answers_to_each_allowed_name(proxied: Product, host: str, path: str) -> None:
    assert ask(proxied, path, Host=host).status_code == 200


def test_a_host_it_does_not_have_is_refused(proxied: Product) -> None:
    assert ask(proxied, "/admin/login/", Host="stranger.example").status_code == 400
    assert ask(proxied, "/healthz", Host="stranger.example").status_code == 200


def log_in(product: Product, **headers: str) -> int:
    """Post a form that a browser got through the proxy; return the answer's status."""
    through = {"Host": HOST, "X-Forwarded-Proto": "https"}
    form = ask(product, "/admin/login/", **through)
    ((name, token),) = form.cookies.items()
    return requests.post(
        f"{product.rest.base_url}/admin/login/",
        data={"csrfmiddlewaretoken": token, "username": "admin", "password": PASSWORD},
        # By hand: the cookie is for https only.
        headers=through | {"Cookie": f"{name}={token}"} | headers,
        allow_redirects=False,
        timeout=SECONDS,
    ).status_code


def test_a_person_can_log_in(proxied: Product) -> None:
    assert log_in(proxied, Origin=f"https://{HOST}") == 302
    assert log_in(proxied, Referer=f"https://{HOST}/admin/login/") == 302


def test_a_form_posted_through_an_https_proxy_passes_the_csrf_check(proxied: Product) -> None:
    assert log_in(proxied) == 403
    assert log_in(proxied, Origin=f"http://{HOST}") == 403


def test_a_log_that_grew_too_long_is_shortened_while_it_runs(proxied: Product) -> None:
    log = proxied.home / "logs" / "web.log"
    with log.open("ab") as grown:
        grown.truncate(11 * 1024 * 1024)
    eventually(lambda: log.stat().st_size < 1024 * 1024, "it is short")
    assert log.with_suffix(".log.1").stat().st_size >= 11 * 1024 * 1024
