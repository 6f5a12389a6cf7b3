"""Whom the web server lets in with how much: the longest body of each path, and who is known before a body is read."""

import asyncio
import logging
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from http.cookies import CookieError, SimpleCookie

from django.conf import settings
from django.contrib.sessions.models import Session
from django.db import Error, connection
from django.utils import timezone

from config.web.environ import Environ
from delivery.publishing.callback_tokens import callback_key, read_token
from subscriptions.api.authentication import is_usable
from subscriptions.models.api_key import hash_of

log = logging.getLogger(__name__)

BATCH = "/api/v1/messages:batch"
CONFIGURATION = "/api/v1/configuration/"
CALLBACKS = "/callbacks/"
# A body of a message stands in other bodies as base64, or percent-encoded in a form.
MOST_FOR_A_MESSAGE = 4
# Who was known is not looked up again for so long: a publisher sends one batch after the other.
KNOWN_SECONDS = 10.0
UNKNOWN_SECONDS = 1.0
MOST_REMEMBERED = 10_000
# One query takes a millisecond: who is behind so many would wait too long.
MOST_SOUGHT = 200


def limit_of(path: str, *, max_message_bytes: int, max_batch_bytes: int) -> int:
    """Return how long a body may be that is sent to a path."""
    if path == BATCH or path.startswith(CONFIGURATION):
        return max_batch_bytes
    is_message = path.startswith(CALLBACKS) or (
        path.startswith("/api/v1/events/") and path.endswith("/messages")
    )
    return max_message_bytes if is_message else MOST_FOR_A_MESSAGE * max_message_bytes


class Senders:
    """Who sends a request, by its headers alone; this lets nobody in, the views do.

    It is queried for long bodies only. The queries have a thread of their own: all others may be waiting. Who is not found
    in time, as while the database is away, counts as a stranger.
    """

    def __init__(self, *, seconds: float = 2.0) -> None:
        self._seconds = seconds
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="known")
        self._known_until: dict[str, float] = {}
        self._unknown_until: dict[str, float] = {}
        self._sought: dict[str, asyncio.Future[bool]] = {}

    async def __call__(self, environ: Environ) -> str:
        """Return what the sender is known by, or nothing."""
        path: str = environ["PATH_INFO"]
        if path.startswith(CALLBACKS):
            token = path.removeprefix(CALLBACKS)
            return token if read_token(token, key=callback_key(settings.SECRET_KEY)) is not None else ""
        credential, is_valid = _credential(environ)
        return credential if credential and await self._is_known(credential, is_valid) else ""

    async def _is_known(self, credential: str, is_valid: Callable[[str], bool]) -> bool:
        now = time.monotonic()
        if self._known_until.get(credential, 0.0) > now:
            return True
        if self._unknown_until.get(credential, 0.0) > now:
            return False
        sought = self._sought.get(credential)
        if sought is None:
            if len(self._sought) >= MOST_SOUGHT:
                return False
            sought = asyncio.ensure_future(self._seek(credential, is_valid))
            self._sought[credential] = sought
        found, _ = await asyncio.wait([sought], timeout=self._seconds)
        return bool(found) and sought.result()

    async def _seek(self, credential: str, is_valid: Callable[[str], bool]) -> bool:
        loop = asyncio.get_running_loop()
        try:
            is_known = await loop.run_in_executor(self._thread, _look_up, credential, is_valid)
        finally:
            del self._sought[credential]
        until = self._known_until if is_known else self._unknown_until
        if len(until) >= MOST_REMEMBERED:
            until.clear()
        until[credential] = time.monotonic() + (KNOWN_SECONDS if is_known else UNKNOWN_SECONDS)
        return is_known


def _credential(environ: Environ) -> tuple[str, Callable[[str], bool]]:
    """Return what the request identifies itself by, and how to check it: a key, or a session of the console."""
    scheme, _, key = environ.get("HTTP_AUTHORIZATION", "").partition(" ")
    if key and scheme.lower() == "bearer":
        return hash_of(key.strip()), is_usable
    try:
        morsel = SimpleCookie(environ.get("HTTP_COOKIE", "")).get(settings.SESSION_COOKIE_NAME)
    except CookieError:
        morsel = None
    return ("" if morsel is None else morsel.value), _is_session


def _is_session(key: str) -> bool:
    return Session.objects.filter(pk=key, expire_date__gt=timezone.now()).exists()


def _look_up(credential: str, is_valid: Callable[[str], bool]) -> bool:
    try:
        return is_valid(credential)
    except Error:
        # The view will say what is wrong with the database.
        log.warning("who sends a long body cannot be looked up", exc_info=True)
        return False
    finally:
        # It is rare, and goes back to the pool.
        connection.close()
