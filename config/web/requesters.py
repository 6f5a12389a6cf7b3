"""Requesters: known ones by their credentials, before the body is read; others by their origin.

Authorization is left to the views; here a requester only gets a share of memory and separate
threads. A valid credential counts for KNOWN_SECONDS after the last use, and while in use it is
looked up again every AGAIN_SECONDS, beside the request. So a client at work never waits for the
database, and none becomes anonymous because others flood.

All waiting credentials are looked up together, MOST_TOGETHER by a round of queries, in a separate
thread, because all others may be waiting. So a flood of unknown credentials delays a known one by
some milliseconds, however many there are. If the database does not answer, a credential not seen
lately gets a 503; the client does not become anonymous. A credential beyond MOST_WAITING look-ups
gets a 503 too.

Nothing is kept of an anonymous client's text but a digest of fixed length.
"""

import asyncio
import base64
import logging
import time
from collections import OrderedDict
from collections.abc import Collection, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from django.conf import settings
from django.contrib.sessions.models import Session
from django.db import Error, connection
from django.utils import timezone

from config.web.cookies import cookie_value
from config.web.environ import Environ
from config.web.health import PROBES
from config.web.request_bodies import Requester
from delivery.incoming.problems import Problem, problem_of_database
from delivery.models import BuiltInReceiver
from delivery.publishing.callback_tokens import callback_key, read_token
from delivery.publishing.reply_headers import reply_key
from subscriptions.models import ApiKey, PublishId
from subscriptions.models.api_key import hash_of
from subscriptions.values.built_in_receivers import is_receiver_token
from subscriptions.values.client_address import address_of, origin_of

log = logging.getLogger(__name__)

CALLBACKS = "/callbacks/"
RECEIVERS = "/receiver/"
REPLIES = "/replies/"
EVENT_QUEUE = "/event/queue/"
WORKFRONT = "/attask/"
KNOWN_SECONDS = 600.0
AGAIN_SECONDS = 10.0
UNKNOWN_SECONDS = 1.0
MAX_REMEMBERED = 10_000
MOST_TOGETHER = 1_000
# Waiting look-ups of unseen credentials; known credentials are MAX_REMEMBERED at most.
MOST_WAITING = 5 * MOST_TOGETHER
# A query takes milliseconds, so after this time the database is away.
LONGEST_LOOK_UP_SECONDS = 10.0
# Django's session keys have 32 characters; nothing longer is looked up.
_LONGEST_SESSION = 40


_PROBE = Requester("PROBE", is_known=True)


class Means(Enum):
    KEY = auto()
    PUBLISH_ID = auto()
    RECEIVER = auto()
    SESSION = auto()


@dataclass(frozen=True, slots=True)
class Credential:
    """The hash of a key or publish id, or a token or session key of bounded length."""

    kind: Means
    text: str


@dataclass(slots=True)
class _Remembered:
    until: float
    again_at: float


class KnownRequesters:
    """The known requesters of a process; for the event loop's thread only."""

    def __init__(self, *, seconds: float = LONGEST_LOOK_UP_SECONDS) -> None:
        self._seconds = seconds
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="known")
        self._known: OrderedDict[Credential, _Remembered] = OrderedDict()
        self._unknown_until: dict[Credential, float] = {}
        self._waiting: dict[Credential, asyncio.Future[bool]] = {}
        self._under_way: dict[Credential, asyncio.Future[bool]] = {}
        self._looking: asyncio.Task[None] | None = None

    async def identify(self, environ: Environ) -> Requester:
        """Return the requester, after a look-up if need be.

        Raises Problem 503 if none is possible.
        """
        credential = credential_of(environ)
        if credential is None or not (
            self._is_remembered(credential) or await self._is_known(credential)
        ):
            return self._anonymous_or_token(environ)
        return _known(credential)

    def remembered(self, environ: Environ) -> Requester:
        """Return the requester as far as it is known now; look an unseen credential up for later.

        Probes count as a known requester, so that a flood does not make a machine look dead.
        """
        if environ["PATH_INFO"] in PROBES:
            return _PROBE
        credential = credential_of(environ)
        if credential is None:
            return self._anonymous_or_token(environ)
        if self._is_remembered(credential):
            return _known(credential)
        if self._unknown_until.get(credential, 0.0) <= time.monotonic() and self._has_room():
            self._look_up(credential)
        return anonymous_requester(environ)

    def _anonymous_or_token(self, environ: Environ) -> Requester:
        token = _signed_token(environ["PATH_INFO"])
        return Requester(token, is_known=True) if token else anonymous_requester(environ)

    def _is_remembered(self, credential: Credential) -> bool:
        now = time.monotonic()
        entry = self._known.get(credential)
        if entry is None or entry.until <= now:
            return False
        entry.until = now + KNOWN_SECONDS
        self._known.move_to_end(credential)
        if entry.again_at <= now:
            entry.again_at = now + AGAIN_SECONDS
            self._look_up(credential)
        return True

    async def _is_known(self, credential: Credential) -> bool:
        if self._unknown_until.get(credential, 0.0) > time.monotonic():
            return False
        if not (self._has_room() or credential in self._waiting):
            raise _too_late()
        look_up = self._look_up(credential)
        if not (await asyncio.wait([look_up], timeout=self._seconds))[0]:
            raise _too_late()
        return look_up.result()

    def _has_room(self) -> bool:
        return len(self._waiting) < MOST_WAITING

    def _look_up(self, credential: Credential) -> "asyncio.Future[bool]":
        """Return the waiting or running look-up of a credential, or begin it."""
        look_up = self._waiting.get(credential) or self._under_way.get(credential)
        if look_up is None:
            look_up = asyncio.get_running_loop().create_future()
            look_up.add_done_callback(_forget)
            self._waiting[credential] = look_up
            if self._looking is None:
                self._looking = asyncio.ensure_future(self._look_all_up())
        return look_up

    async def _look_all_up(self) -> None:
        try:
            while self._waiting:
                group = list(self._waiting)[:MOST_TOGETHER]
                self._under_way = {
                    credential: self._waiting.pop(credential) for credential in group
                }
                await self._look_group_up(self._under_way)
        finally:
            self._looking, self._under_way = None, {}

    async def _look_group_up(self, group: dict[Credential, "asyncio.Future[bool]"]) -> None:
        loop = asyncio.get_running_loop()
        try:
            valid = await loop.run_in_executor(self._thread, valid_credentials, list(group))
        except Exception as error:
            # Not raised here: the views report it, and these requests get it as their answer.
            problem = problem_of_database(error) or _too_late()
            log.warning("credentials cannot be looked up", exc_info=not isinstance(error, Error))
            for look_up in group.values():
                look_up.set_exception(problem)
            return
        for credential, look_up in group.items():
            self._remember(credential, is_known=credential in valid)
            look_up.set_result(credential in valid)

    def _remember(self, credential: Credential, *, is_known: bool) -> None:
        now = time.monotonic()
        if is_known:
            self._known[credential] = _Remembered(now + KNOWN_SECONDS, now + AGAIN_SECONDS)
            if len(self._known) > MAX_REMEMBERED:
                self._known.popitem(last=False)
            return
        self._known.pop(credential, None)
        if len(self._unknown_until) >= MAX_REMEMBERED:
            self._unknown_until.clear()
        self._unknown_until[credential] = now + UNKNOWN_SECONDS


def credential_of(environ: Environ) -> Credential | None:
    """Return the request's credential, from the address, a header or a cookie."""
    path: str = environ["PATH_INFO"]
    if path.startswith(RECEIVERS):
        token = path.removeprefix(RECEIVERS)
        return Credential(Means.RECEIVER, token) if is_receiver_token(token) else None
    match path.rstrip("/").rsplit("/", 3):
        case [*_, "inbox", _, publish_id]:
            return Credential(Means.PUBLISH_ID, hash_of(publish_id))
    if key := _key(environ, path):
        return Credential(Means.KEY, hash_of(key))
    session = cookie_value(environ.get("HTTP_COOKIE", ""), settings.SESSION_COOKIE_NAME)
    return Credential(Means.SESSION, session) if 0 < len(session) <= _LONGEST_SESSION else None


def anonymous_requester(environ: Environ) -> Requester:
    """Return the requester of a request without a valid credential: its origin."""
    return Requester(origin_of(address_of(environ)), is_known=False)


def _known(credential: Credential) -> Requester:
    return Requester(f"{credential.kind.name} {credential.text}", is_known=True)


def _key(environ: Environ, path: str) -> str:
    """Return the key in the headers the address reads keys from; empty without a key."""
    given = environ.get("HTTP_AUTHORIZATION", "").strip()
    if path.startswith(WORKFRONT):
        given = environ.get("HTTP_SESSIONID") or environ.get("HTTP_X_USER_TOKEN") or given
        if " " not in given:
            return str(given)
    scheme, _, text = given.partition(" ")
    if scheme.lower() == "basic" and path.startswith(EVENT_QUEUE):
        try:
            return base64.b64decode(text, validate=True).decode().partition(":")[2]
        except ValueError:
            return ""
    return text.strip() if scheme.lower() == "bearer" else ""


def _signed_token(path: str) -> str:
    """Return the token of a callback or reply if Inturn signed it."""
    for prefix, key_of in ((CALLBACKS, callback_key), (REPLIES, reply_key)):
        if path.startswith(prefix):
            token = path.removeprefix(prefix)
            return token if read_token(token, key=key_of(settings.SECRET_KEY)) is not None else ""
    return ""


def valid_credentials(credentials: Collection[Credential]) -> set[Credential]:
    """Return the credentials that are valid now, and record no use."""
    now = timezone.now()
    by_kind: dict[Means, list[str]] = {kind: [] for kind in Means}
    for credential in credentials:
        by_kind[credential.kind].append(credential.text)
    keys = ApiKey.objects.usable(now=now).filter(hash__in=by_kind[Means.KEY])
    publish_ids = PublishId.objects.valid(now=now).filter(hash__in=by_kind[Means.PUBLISH_ID])
    receivers = BuiltInReceiver.objects.filter(token__in=by_kind[Means.RECEIVER])
    sessions = Session.objects.filter(pk__in=by_kind[Means.SESSION], expire_date__gt=now)
    found: dict[Means, Iterable[Any]] = {
        Means.KEY: keys.values_list("hash", flat=True),
        Means.PUBLISH_ID: publish_ids.values_list("hash", flat=True),
        Means.RECEIVER: receivers.values_list("token", flat=True),
        Means.SESSION: sessions.values_list("pk", flat=True),
    }
    try:
        return {Credential(kind, text) for kind in Means if by_kind[kind] for text in found[kind]}
    finally:
        # Look-ups are rare, so the connection goes back to the pool.
        connection.close()


def _too_late() -> Problem:
    detail = "The credential cannot be looked up: the database does not answer. Repeat the request."
    return Problem(503, "database-away", detail, headers={"Retry-After": "5"})


def _forget(look_up: "asyncio.Future[bool]") -> None:
    if not look_up.cancelled():
        look_up.exception()
