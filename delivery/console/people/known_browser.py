"""The cookie by which the console knows a browser with an earlier sign-in to an account.

Whoever shares the owner's address, such as a colleague behind the same proxy, can fail five times
in the owner's name. The owner's own browser does not wait for others: this browser's failures are
counted by themselves (`subscriptions.sign_in`). The cookie is worth no more than these few guesses.
"""

import secrets

from django.conf import settings
from django.core import signing
from django.http import HttpRequest, HttpResponse
from django.urls import reverse

from subscriptions.sign_in import KNOWN, account_of

_SALT = "inturn.known-browser"


def browser_of(request: HttpRequest, username: str) -> str:
    """Return the number of a browser with an earlier sign-in as this user; empty for others."""
    try:
        account, number = signing.loads(request.COOKIES.get(_name(), ""), salt=_SALT, max_age=KNOWN)
    except (signing.BadSignature, ValueError):
        return ""
    return number if account == account_of(username) else ""


def remember_browser(request: HttpRequest, answer: HttpResponse, username: str) -> None:
    """Send the browser the cookie of this user, with the browser's number, if any."""
    number = browser_of(request, username) or secrets.token_hex(16)
    answer.set_cookie(
        _name(),
        signing.dumps([account_of(username), number], salt=_SALT),
        max_age=KNOWN,
        path=reverse("admin:login"),
        secure=settings.SESSION_COOKIE_SECURE,
        httponly=True,
        samesite="Lax",
    )


def _name() -> str:
    return f"{settings.SESSION_COOKIE_NAME}_known"
