"""Authentication and authorization of API calls: a Bearer key, and the scope."""

from typing import TYPE_CHECKING

from django.utils import timezone
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from delivery.incoming.keys import usable_key
from delivery.incoming.problems import Problem
from subscriptions.models import ApiKey, Publisher, Scope
from subscriptions.reach import is_limited

if TYPE_CHECKING:
    # Importing it at run time is circular: the framework imports this module to define the view
    # class.
    from rest_framework.views import APIView

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


def reads_everything(key: ApiKey) -> bool:
    """Return whether the key may read, without a limit to a publisher or subscriber."""
    return Scope.READ in GRANTED[key.scope] and not is_limited(key)


class HasScope(BasePermission):
    """Admits a key with any of the view's `required_scopes`; the scope manage includes read.

    A limited key is admitted only to the actions with restricted rows, `limited_actions`: a view
    without any is closed to it.
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
