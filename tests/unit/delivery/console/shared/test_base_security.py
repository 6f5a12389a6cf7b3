"""The console's protection: the security policy of its pages, and the values that it hides."""

import base64
import gzip
import hashlib
import re

import pytest
from django.conf import settings
from django.contrib import admin
from django.contrib.auth.models import User
from django.test import Client

from tests.support import factories
from tests.unit.delivery.console.everything import make_everything
from tests.unit.delivery.console.matrix import ADMINISTRATOR, AUDITOR, MATRIX, address_of

STYLE = re.compile(r"<style[^>]*>(.*?)</style>", re.DOTALL)


def sha256_of(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


@pytest.fixture(
    params=["/admin/login/", "/admin/", "/admin/subscriptions/subscription/", "message"]
)
def page(request: pytest.FixtureRequest, ann: Client) -> str:
    if request.param == "message":
        return ann.get(f"/admin/delivery/message/{factories.message().pk}/change/").text
    return (Client() if "login" in request.param else ann).get(request.param).text


def test_the_only_inline_style_is_the_one_that_the_policy_names(page: str) -> None:
    (style,) = STYLE.findall(page)
    allowed = settings.CONTENT_SECURITY_POLICY["DIRECTIVES"]["style-src"]
    assert sha256_of(style) in allowed, f"put {sha256_of(style)} into CONTENT_SECURITY_POLICY"


def test_no_page_has_inline_scripts_handlers_or_style_attributes(page: str) -> None:
    assert not re.findall(r"<script(?![^>]*\bsrc=)[^>]*>", page)
    assert not re.findall(r"<[^>]+\s(?:on[a-z]+|style)=\"", page)
    assert not re.findall(r"(?:src|href|action)=\"(?:https?:)?//", page)


def test_pages_are_compressed_to_lengths_that_reveal_nothing(ann: Client) -> None:
    answers = [
        ann.get("/admin/delivery/journalentry/", headers={"Accept-Encoding": "gzip"})
        for _ in range(6)
    ]
    assert {answer.headers["Content-Encoding"] for answer in answers} == {"gzip"}
    assert len({len(answer.content) for answer in answers}) > 1
    assert b"Journal" in gzip.decompress(answers[0].content)


def test_calls_of_the_api_are_not_compressed(client: Client) -> None:
    answer = client.get("/api/v1/messages", headers={"Accept-Encoding": "gzip"})
    assert "Content-Encoding" not in answer.headers


def test_no_cache_keeps_a_page_of_the_console(ann: Client) -> None:
    """Neither the browser's cache, for the next user, nor a proxy's, for everybody.

    The test of the permissions asks for the pages that auditors see.
    """
    arguments = make_everything()
    for name, row in MATRIX.items():
        if ADMINISTRATOR in row.get and AUDITOR not in row.get:
            answer = ann.get(address_of(name, arguments))
            assert answer.status_code == 302 or "no-store" in answer.headers["Cache-Control"], name


@pytest.mark.django_db
def test_the_session_is_for_a_day_and_for_no_script_nor_other_site(client: Client) -> None:
    User.objects.create_user("una", password="right", is_staff=True)
    client.post("/admin/login/", {"username": "una", "password": "right"})
    cookie = client.cookies[settings.SESSION_COOKIE_NAME]
    assert cookie["max-age"] == 12 * 3600
    assert cookie["httponly"]
    assert cookie["samesite"] == "Lax"


@pytest.mark.django_db
def test_no_frame_no_sniffing_no_referrer_elsewhere(client: Client) -> None:
    headers = client.get("/admin/login/").headers
    assert headers["X-Frame-Options"] == "DENY"
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "same-origin"
    assert headers["Cross-Origin-Opener-Policy"] == "same-origin"
    for directive in ("frame-ancestors 'none'", "form-action 'self'", "base-uri 'none'"):
        assert directive in headers["Content-Security-Policy"]


@pytest.mark.django_db
def test_a_post_without_the_token_of_the_page_is_refused() -> None:
    strict = Client(enforce_csrf_checks=True)
    assert strict.post("/admin/login/", {"username": "ann", "password": "x"}).status_code == 403


@pytest.mark.django_db
def test_scripts_and_styles_come_only_from_this_server(client: Client) -> None:
    policy = client.get("/admin/login/").headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe-inline" not in policy


def test_only_our_own_modules_are_in_the_console() -> None:
    apps = {model._meta.app_label for model in admin.site._registry}
    assert apps == {"subscriptions", "delivery", "auth"}
