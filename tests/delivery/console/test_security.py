"""What protects the console: the policy of its pages, and what it does not show."""

import base64
import hashlib
import re

import pytest
from django.conf import settings
from django.contrib import admin
from django.test import Client

from tests import factories

STYLE = re.compile(r"<style[^>]*>(.*?)</style>", re.DOTALL)


def sha256_of(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


@pytest.fixture(params=["/admin/login/", "/admin/", "/admin/subscriptions/subscription/", "message"])
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


@pytest.mark.django_db
def test_scripts_and_styles_come_from_here_only(client: Client) -> None:
    policy = client.get("/admin/login/").headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe-inline" not in policy


def test_only_our_own_modules_are_in_the_console() -> None:
    apps = {model._meta.app_label for model in admin.site._registry}
    assert apps == {"subscriptions", "delivery", "auth"}
