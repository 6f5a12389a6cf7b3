"""Django's middleware, for pages only: API calls need none, and it took a seventh of their time."""

from typing import Any

from csp.middleware import CSPMiddleware as ContentSecurityPolicy
from django.contrib.auth.middleware import AuthenticationMiddleware
from django.contrib.messages.middleware import MessageMiddleware
from django.contrib.sessions.middleware import SessionMiddleware
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.middleware.clickjacking import XFrameOptionsMiddleware
from django.middleware.csrf import CsrfViewMiddleware
from django.middleware.gzip import GZipMiddleware
from whitenoise.middleware import WhiteNoiseMiddleware

# Called with a key and answered in JSON: no sessions, no forms, nothing for a browser to render.
API = "/api/v1/"


class _OfPages:
    """Mix in before a middleware, to skip it for API calls."""

    get_response: Any

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if request.path_info.startswith(API):
            answer: HttpResponseBase = self.get_response(request)
            return answer
        # Each middleware has `__call__`.
        page: HttpResponseBase = super().__call__(request)  # type: ignore[misc]
        return page


class PagePolicy(_OfPages, ContentSecurityPolicy): ...


class StaticFiles(_OfPages, WhiteNoiseMiddleware): ...  # type: ignore[misc]  # It has no types.


class Compression(_OfPages, GZipMiddleware):
    """Pages compressed by gzip.

    An attacker who has a victim's browser request a page with guesses, and sees how long the
    answers are, could learn a secret in the page (BREACH). So Django varies the length at random;
    the token of forms is masked anew in each page; other sites cannot request a page with the
    user's session (SameSite=Lax); and keys and secrets are shown once, on a page that repeats
    nothing from the request.
    """


class Sessions(_OfPages, SessionMiddleware): ...


class Csrf(_OfPages, CsrfViewMiddleware): ...


class Authentication(_OfPages, AuthenticationMiddleware): ...


class Messages(_OfPages, MessageMiddleware): ...


class Frames(_OfPages, XFrameOptionsMiddleware): ...
