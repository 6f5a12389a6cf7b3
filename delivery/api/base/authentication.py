"""Authentication and authorization of API calls: a Bearer key, and its scope."""

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from django.db import InternalError
from django.db.models import Q
from django.utils import timezone
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from delivery.api.base.problems import Problem
from subscriptions.database_away import is_read_only, reconnect_next_time
from subscriptions.matching.lookups import key_by_hash
from subscriptions.models import ApiKey, Publisher, Scope
from subscriptions.models.api_key import hash_of
from subscriptions.reach import is_limited

if TYPE_CHECKING:
    # Importing it at run time is circular: the framework imports this module to define its view
    # class.
    from rest_framework.views import APIView

LAST_USED_PRECISION = timedelta(minutes=1)
# With `key` and the hint this fits into the 200 characters of an actor.
MAX_SHOWN_NAME = 150

GRANTED: dict[str, frozenset[str]] = {
    Scope.MANAGE: frozenset({Scope.MANAGE, Scope.READ}),
    Scope.READ: frozenset({Scope.READ}),
    Scope.PUBLISH: frozenset({Scope.PUBLISH}),
    Scope.FETCH: frozenset({Scope.FETCH}),
}


class KeyAuthentication(BaseAuthentication):
    """`request.auth` is the ApiKey; there is no user.

    The permission refuses requests without a key.
    """

    def authenticate(self, request: Request) -> tuple[None, ApiKey] | None:
        header = request.META.get("HTTP_AUTHORIZATION", "")
        if not header:
            return None
        scheme, _, key = header.partition(" ")
        if scheme.lower() != "bearer" or not key.strip():
            raise AuthenticationFailed("Send the key as: Authorization: Bearer <key>.")
        return self.by_key(key.strip())

    def by_key(self, key: str) -> tuple[None, ApiKey]:
        return None, usable_key(key, now=timezone.now())

    def authenticate_header(self, request: Request) -> str:
        return 'Bearer realm="inturn"'


def usable_key(text: str, *, now: datetime) -> ApiKey:
    """Return the key with its publisher, in one query.

    Raises AuthenticationFailed with the reason.
    """
    key = key_by_hash(hash_of(text))
    if key is None:
        raise AuthenticationFailed("This key is not known; check that it was copied whole.")
    if key.revoked_at is not None:
        raise AuthenticationFailed("This key was revoked; ask an administrator for a new one.")
    if key.expires_at is not None and key.expires_at <= now:
        raise AuthenticationFailed("This key has expired; ask an administrator for a new one.")
    _note_use(key, now=now)
    return key


def is_usable(hashed: str) -> bool:
    """Return whether a key has this hash and is neither revoked nor expired; records no use."""
    key = key_by_hash(hashed)
    if key is None or key.revoked_at is not None:
        return False
    return key.expires_at is None or key.expires_at > timezone.now()


def _note_use(key: ApiKey, *, now: datetime) -> None:
    # At most once a minute, because each publish would wait for one more commit.
    stale = now - LAST_USED_PRECISION
    if key.last_used_at is None or key.last_used_at < stale:
        is_stale = Q(last_used_at=None) | Q(last_used_at__lt=stale)
        try:
            ApiKey.objects.filter(is_stale, pk=key.pk).update(last_used_at=now)
        except InternalError as error:
            # Calls that only read still work while the database is read-only.
            if not is_read_only(error):
                raise
            reconnect_next_time()


def reads_everything(key: ApiKey) -> bool:
    """Return whether the key may read, without a limit to a publisher or subscriber."""
    return Scope.READ in GRANTED[key.scope] and not is_limited(key)


class HasScope(BasePermission):
    """Admits a key with one of the view's `required_scopes`; the scope manage includes read.

    A limited key is admitted only to the actions that restrict their rows, `limited_actions`: a
    view that does not name any is closed to it.
    """

    def has_permission(self, request: Request, view: "APIView") -> bool:
        if not isinstance(request.auth, ApiKey):
            # The framework turns this into 401 and adds WWW-Authenticate.
            return False
        required: frozenset[str] = view.required_scopes  # type: ignore[attr-defined]
        if not GRANTED[request.auth.scope] & required:
            wanted = " or ".join(sorted(required))
            raise Problem(
                403,
                "wrong-scope",
                f"This key has the scope {request.auth.scope}; needed is {wanted}.",
            )
        action = getattr(view, "action", None)
        if is_limited(request.auth) and action not in getattr(view, "limited_actions", ()):
            owner = request.auth.publisher or request.auth.subscriber
            raise Problem(
                403,
                "limited-key",
                f"This key is limited to {owner}: it reads only messages, deliveries and lanes "
                "of that.",
            )
        return True


def key_of_request(request: Request) -> ApiKey:
    assert isinstance(request.auth, ApiKey)
    return request.auth


def publisher_of(request: Request) -> Publisher:
    """Return the publisher of a request with scope publish: a constraint gives such a key one."""
    publisher = key_of_request(request).publisher
    assert publisher is not None
    return publisher


def actor_of(request: Request) -> str:
    """Return the caller's name for the configuration log and the journal, cut to their length."""
    key = key_of_request(request)
    return f"key {key.name[:MAX_SHOWN_NAME]} …{key.hint}" if key.name else str(key)
