"""Limits before a body is read: the longest body of each path, and the identity of the sender."""

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
from delivery.publishing.reply_headers import reply_key
from subscriptions.api.authentication import is_usable
from subscriptions.models.api_key import hash_of

log = logging.getLogger(__name__)

BATCH = "/api/v1/messages:batch"
CONFIGURATION = "/api/v1/configuration/"
CALLBACKS = "/callbacks/"
RECEIVERS = "/receiver/"
REPLIES = "/replies/"
# Other bodies may contain a message in base64, or percent-encoded in a form.
MOST_FOR_A_MESSAGE = 4
# A known sender is not looked up again for this long: a publisher sends one batch after the other.
KNOWN_SECONDS = 10.0
UNKNOWN_SECONDS = 1.0
MAX_REMEMBERED = 10_000
# A query takes a millisecond, so a sender behind this many would wait too long.
MAX_LOOK_UPS = 200


def limit_of(path: str, *, max_message_bytes: int, max_batch_bytes: int) -> int:
    """Return the longest body that may be sent to a path."""
    if path == BATCH or path.startswith(CONFIGURATION):
        return max_batch_bytes
    is_message = (
        path.startswith((CALLBACKS, REPLIES, RECEIVERS))
        or (path.startswith("/api/v1/events/") and path.endswith("/messages"))
        or (path.startswith("/api/v1/mailboxes/") and path.endswith("/reply"))
    )
    return max_message_bytes if is_message else MOST_FOR_A_MESSAGE * max_message_bytes


class RequestClients:
    """Identifies a request's sender by its headers; authorization is left to the views.

    Only long bodies cause a query. The queries have their own thread, because all others may be
    waiting. A sender that is not found in time, as while the database is away, counts as a
    stranger.
    """

    def __init__(self, *, seconds: float = 2.0) -> None:
        self._seconds = seconds
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="known")
        self._known_until: dict[str, float] = {}
        self._unknown_until: dict[str, float] = {}
        self._look_ups: dict[str, asyncio.Future[bool]] = {}

    async def __call__(self, environ: Environ) -> str:
        """Return the sender's credential, or an empty string for a stranger."""
        path: str = environ["PATH_INFO"]
        for prefix, key_of in ((CALLBACKS, callback_key), (REPLIES, reply_key)):
            if path.startswith(prefix):
                token = path.removeprefix(prefix)
                is_ours = read_token(token, key=key_of(settings.SECRET_KEY)) is not None
                return token if is_ours else ""
        credential, is_valid = _credential(environ)
        return credential if credential and await self._is_known(credential, is_valid) else ""

    async def _is_known(self, credential: str, is_valid: Callable[[str], bool]) -> bool:
        now = time.monotonic()
        if self._known_until.get(credential, 0.0) > now:
            return True
        if self._unknown_until.get(credential, 0.0) > now:
            return False
        look_up = self._look_ups.get(credential)
        if look_up is None:
            if len(self._look_ups) >= MAX_LOOK_UPS:
                return False
            look_up = asyncio.ensure_future(self._look_up(credential, is_valid))
            self._look_ups[credential] = look_up
        done, _ = await asyncio.wait([look_up], timeout=self._seconds)
        return bool(done) and look_up.result()

    async def _look_up(self, credential: str, is_valid: Callable[[str], bool]) -> bool:
        loop = asyncio.get_running_loop()
        try:
            is_known = await loop.run_in_executor(self._thread, _look_up, credential, is_valid)
        finally:
            del self._look_ups[credential]
        until = self._known_until if is_known else self._unknown_until
        if len(until) >= MAX_REMEMBERED:
            until.clear()
        until[credential] = time.monotonic() + (KNOWN_SECONDS if is_known else UNKNOWN_SECONDS)
        return is_known


def _credential(environ: Environ) -> tuple[str, Callable[[str], bool]]:
    """Return the request's credential, a key or a console session, and the check for it."""
    scheme, _, key = environ.get("HTTP_AUTHORIZATION", "").partition(" ")
    if key and scheme.lower() == "bearer":
        return hash_of(key.strip()), is_usable
    try:
        cookie = SimpleCookie(environ.get("HTTP_COOKIE", "")).get(settings.SESSION_COOKIE_NAME)
    except CookieError:
        cookie = None
    return ("" if cookie is None else cookie.value), _is_session


def _is_session(key: str) -> bool:
    return Session.objects.filter(pk=key, expire_date__gt=timezone.now()).exists()


def _look_up(credential: str, is_valid: Callable[[str], bool]) -> bool:
    try:
        return is_valid(credential)
    except Error:
        # The view will report the problem with the database.
        log.warning("the sender of a long body cannot be looked up", exc_info=True)
        return False
    finally:
        # Queries are rare, so the connection goes back to the pool.
        connection.close()
