"""API keys: which are usable, and which event types the publisher of a key may publish."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import InternalError
from django.db.models import Q
from django.utils import timezone
from rest_framework.exceptions import AuthenticationFailed

from subscriptions.database_away import is_read_only, reconnect_next_time
from subscriptions.matching.lookups import key_by_hash
from subscriptions.models import ApiKey, EventType, Publisher, Scope
from subscriptions.models.api_key import hash_of

LAST_USED_PRECISION = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class Grant:
    """The publisher of a key, and the publishable event types, by id; None is all."""

    publisher: Publisher
    event_types: frozenset[int] | None
    expires_at: datetime | None

    def allows(self, event_type: EventType) -> bool:
        if self.expires_at is not None and self.expires_at <= timezone.now():
            return False
        return self.event_types is None or event_type.pk in self.event_types


def usable_key(text: str, *, now: datetime) -> ApiKey:
    """Return the key with the publisher, in one query.

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
    # At most once a minute, because each publish would wait for another commit.
    stale = now - LAST_USED_PRECISION
    if key.last_used_at is None or key.last_used_at < stale:
        is_stale = Q(last_used_at=None) | Q(last_used_at__lt=stale)
        try:
            ApiKey.objects.filter(is_stale, pk=key.pk).update(last_used_at=now)
        except InternalError as error:
            # Reading calls still work while the database is read-only.
            if not is_read_only(error):
                raise
            reconnect_next_time()


def grant_of(text: str) -> Grant | None:
    """Return the grant of a key; None if it may not publish, for whatever reason."""
    try:
        key = usable_key(text, now=timezone.now())
    except AuthenticationFailed:
        return None
    publisher = key.publisher
    if key.scope != Scope.PUBLISH or publisher is None:
        return None
    allowed = (
        None if publisher.all_event_types else publisher.event_types.values_list("pk", flat=True)
    )
    return Grant(publisher, None if allowed is None else frozenset(allowed), key.expires_at)
