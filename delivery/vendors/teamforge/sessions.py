"""Logins of TeamForge's clients: name and password for a token, which is valid for an hour.

The name is a publisher's, the password a key. The token is signed, not stored: it has the key's id,
so revoking a key ends the sessions. A wrong password is recorded and counted as at the console
(`subscriptions.sign_in`), but at a separate door. A correct key is always accepted: it cannot be
guessed, and failed logins in the owner's name cannot lock the owner out.
"""

from datetime import datetime

from django.core import signing
from rest_framework.exceptions import AuthenticationFailed

from delivery.incoming.keys import is_usable, usable_key
from delivery.incoming.problems import Problem
from subscriptions import sign_in
from subscriptions.models import ApiKey, Door, Publisher, Scope
from subscriptions.sign_in import ThrottledError, Visitor
from subscriptions.values.names import is_name

SESSION_SECONDS = 3600
_SALT = "inturn.teamforge.session"
_WRONG = "Username is the name of a publisher, Password one of its keys."
_OVER = "This session token is wrong or older than an hour. Log in again."
_MISSING = "Send the SessionToken of a login as Authorization, or use the address with /v4/."


def log_in(username: str, password: str, *, address: str | None, now: datetime) -> str:
    """Return a token; raise AuthenticationFailed, or Problem 429 after too many failures."""
    key = _key(username, password, now=now)
    if key is not None:
        return signing.dumps(key.pk, salt=_SALT, compress=False)
    name = f"publisher {username}"
    is_known = is_name(username) and Publisher.objects.filter(name=username).exists()
    try:
        sign_in.begin_sign_in(
            Visitor(
                door=Door.TEAMFORGE,
                username=name,
                address=address,
                shown=name if is_known else "",
            ),
            now=now,
        )
    except ThrottledError as throttled:
        seconds = max(int((throttled.until - now).total_seconds()), 0) + 1
        detail = "Too many logins failed from here or for this publisher. Try again later."
        raise Problem(
            429, "too-many-failures", detail, headers={"Retry-After": str(seconds)}
        ) from None
    raise AuthenticationFailed(_WRONG)


def publisher_of_session(header: str) -> Publisher:
    """Return the publisher of a session token, sent as Authorization with or without `Bearer`.

    Raise AuthenticationFailed if the token is invalid.
    """
    token = header.strip()
    if token[:7].lower() == "bearer ":
        token = token[7:].strip()
    if not token:
        raise AuthenticationFailed(_MISSING)
    try:
        key_id = signing.loads(token, salt=_SALT, max_age=SESSION_SECONDS)
    except signing.BadSignature:
        raise AuthenticationFailed(_OVER) from None
    key = ApiKey.objects.select_related("publisher").filter(pk=key_id, scope=Scope.PUBLISH).first()
    if key is None or key.publisher is None or not is_usable(key.hash):
        raise AuthenticationFailed(_OVER)
    return key.publisher


def _key(username: str, password: str, *, now: datetime) -> ApiKey | None:
    try:
        key = usable_key(password, now=now)
    except AuthenticationFailed:
        return None
    if key.scope != Scope.PUBLISH or key.publisher is None:
        return None
    return key if key.publisher.name == username else None
