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

from config.wsgi_environ import Environ
from delivery.callback_tokens import callback_key, read_token
from subscriptions.api.authentication import is_usable
from subscriptions.models.api_key import hash_of

log = logging.getLogger(__name__)

BATCH = "/api/v1/messages:batch"
CALLBACKS = "/callbacks/"
# A body of a message stands in other bodies as base64, or percent-encoded in a form.
MOST_FOR_A_MESSAGE = 4
# Who was known is not looked up again for so long: a publisher sends one batch after the other.
KNOWN_SECONDS = 10.0
MOST_REMEMBERED = 10_000


def limit_of(path: str, *, max_message_bytes: int, max_batch_bytes: int) -> int:
    """Return how long a body may be that is sent to a path."""
    if path == BATCH:
        return max_batch_bytes
    is_message = path.startswith(CALLBACKS) or (
        path.startswith("/api/v1/events/") and path.endswith("/messages")
    )
    return max_message_bytes if is_message else MOST_FOR_A_MESSAGE * max_message_bytes


class Known:
    """Whether a request comes from somebody known, by its headers alone; this lets nobody in, the views do.

    It is queried for long bodies only. The queries have a thread of their own: all others may be waiting.
    """

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="known")
        self._until: dict[str, float] = {}

    async def __call__(self, environ: Environ) -> bool:
        path: str = environ["PATH_INFO"]
        if path.startswith(CALLBACKS):
            key = callback_key(settings.SECRET_KEY)
            return read_token(path.removeprefix(CALLBACKS), key=key) is not None
        credential, is_valid = _credential(environ)
        if not credential:
            return False
        now = time.monotonic()
        if self._until.get(credential, 0.0) > now:
            return True
        loop = asyncio.get_running_loop()
        if not await loop.run_in_executor(self._thread, _look_up, credential, is_valid):
            return False
        if len(self._until) >= MOST_REMEMBERED:
            self._until.clear()
        self._until[credential] = now + KNOWN_SECONDS
        return True


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
