"""Authentication for a queue: Basic with the subscriber's name, as in the Event Queue, or Bearer.

The password is a fetch key of the subscriber, or the password migrated from the Event Queue
(`Subscriber.queue_password`). A key cannot be guessed, so a single look-up is enough. A password
can: each try is counted like sign-ins to the console (`subscriptions.sign_in`), at a separate door,
and too many failures lead to 429. A correct password is cached in memory by a keyed digest, for as
long as the hash is stored: hashing takes a quarter of a second, and a client calls several times a
second.
"""

import base64
import binascii
import hashlib
import hmac
import secrets

from django.contrib.auth.hashers import check_password, make_password
from django.utils import timezone
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from delivery.api.base.authentication import KeyAuthentication
from delivery.incoming.keys import usable_key
from delivery.incoming.problems import Problem
from subscriptions import sign_in
from subscriptions.matching.lookups import key_by_hash
from subscriptions.models import ApiKey, Door, Scope, Subscriber
from subscriptions.models.api_key import hash_of
from subscriptions.sign_in import ThrottledError, Visitor
from subscriptions.values.client_address import client_address
from subscriptions.values.names import is_name

MOST_REMEMBERED = 10_000
_WRONG = (
    "Send the subscriber's name and one of its fetch keys, "
    "or its queue password, as Basic credentials."
)
_PROCESS_KEY = secrets.token_bytes(32)
_right: set[bytes] = set()


class QueueAuthentication(KeyAuthentication):
    """`request.auth` is the key; for a password it is an unsaved key of scope fetch."""

    def authenticate(self, request: Request) -> tuple[None, ApiKey] | None:
        scheme, _, credentials = request.META.get("HTTP_AUTHORIZATION", "").partition(" ")
        if scheme.lower() != "basic":
            return super().authenticate(request)
        name, password = _name_and_password(credentials)
        return None, _key_of_name(name, password) or _with_password(request, name, password)

    def authenticate_header(self, request: Request) -> str:
        # Many HTTP libraries send their credentials only after this challenge.
        return 'Basic realm="inturn", charset="UTF-8"'


def _name_and_password(credentials: str) -> tuple[str, str]:
    try:
        decoded = base64.b64decode(credentials.strip(), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        raise AuthenticationFailed(_WRONG) from None
    name, colon, password = decoded.partition(":")
    if not colon or not is_name(name) or not password:
        raise AuthenticationFailed(_WRONG)
    return name, password


def _key_of_name(name: str, password: str) -> ApiKey | None:
    """Return the subscriber's fetch key equal to the password.

    Raise AuthenticationFailed if it is no longer usable.
    """
    key = key_by_hash(hash_of(password))
    if key is None or key.subscriber is None or key.subscriber.name != name:
        return None
    return usable_key(password, now=timezone.now())


def _with_password(request: Request, name: str, password: str) -> ApiKey:
    subscriber = Subscriber.objects.filter(name=name).first()
    stored = "" if subscriber is None else subscriber.queue_password
    digest = hmac.digest(_PROCESS_KEY, f"{stored}\n{password}".encode(), hashlib.sha256)
    if subscriber is None or digest not in _right:
        shown = "" if subscriber is None else f"event queue {name}"
        visitor = Visitor(
            door=Door.EVENT_QUEUE,
            username=f"event queue {name}",
            address=client_address(request),
            shown=shown,
        )
        _check(visitor, password, stored=stored)
        _remember(digest)
    return ApiKey(scope=Scope.FETCH, subscriber=subscriber, name="queue password")


def _check(visitor: Visitor, password: str, *, stored: str) -> None:
    """Raise unless the password is right; the try is counted before the check."""
    now = timezone.now()
    try:
        attempt = sign_in.begin_sign_in(visitor, now=now)
    except ThrottledError as throttled:
        seconds = max(int((throttled.until - now).total_seconds()), 0) + 1
        detail = (
            "Too many wrong passwords came from here or for this name. "
            "Try again later, or use a fetch key."
        )
        raise Problem(
            429, "too-many-failures", detail, headers={"Retry-After": str(seconds)}
        ) from None
    if not stored:
        # This takes as long as a check: response times do not reveal which names have a password.
        make_password(password)
        raise AuthenticationFailed(_WRONG)
    if not check_password(password, stored):
        raise AuthenticationFailed(_WRONG)
    sign_in.complete_sign_in(attempt, visitor)


def _remember(digest: bytes) -> None:
    if len(_right) >= MOST_REMEMBERED:
        _right.clear()
    _right.add(digest)
