"""The cookies of this installation; their names begin with `config.env.Environment.cookie_prefix`.

No value of ours is quoted. `http.cookies`, which Django calls, decodes a quoted value in quadratic
time on Python before 3.11.10 (CVE-2024-7592).
"""

from django.conf import settings
from django.contrib.messages.storage.cookie import CookieStorage
from django.contrib.messages.storage.fallback import FallbackStorage
from django.contrib.messages.storage.session import SessionStorage


def own_cookies(header: str, *, prefix: str) -> str:
    """Return a Cookie header with those cookies only which this installation may have set."""
    pairs = header.split(";")
    return ";".join(pair for pair in pairs if pair.strip().startswith(prefix) and '"' not in pair)


def cookie_value(header: str, name: str) -> str:
    """Return the value of the last cookie of the name, as Django reads it; empty if absent."""
    value = ""
    for pair in header.split(";"):
        found, _, text = pair.partition("=")
        if found.strip() == name:
            value = text.strip()
    return value


class _OwnCookie(CookieStorage):
    cookie_name = f"{settings.COOKIE_PREFIX}messages"


class MessageStorage(FallbackStorage):
    """Django's storage of messages to users, in a cookie of this installation."""

    storage_classes = (_OwnCookie, SessionStorage)
