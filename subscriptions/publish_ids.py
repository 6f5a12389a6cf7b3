"""Publish ids of publishers: creation, rotation, end, and look-up by the text in an address."""

import re
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import Q

from subscriptions.models import Publisher, PublishId
from subscriptions.models.api_key import hash_of
from subscriptions.models.publish_id import new_publish_id

OVERLAP = timedelta(hours=24)
MAX_VALID = 5
LAST_USED_PRECISION = timedelta(minutes=1)
# An id taken over from TeamForge is a credential: it must be too long to be guessed.
MIN_LENGTH, MAX_LENGTH = 16, 200
_TEXT = re.compile(r"[A-Za-z0-9._~-]+")


class PublishIdRefusedError(ValueError):
    """This text cannot be a publish id; the message has the remedy."""


def check_text(text: str) -> None:
    """Raise PublishIdRefusedError unless the text fits into an address and is hard to guess."""
    if not MIN_LENGTH <= len(text) <= MAX_LENGTH or not _TEXT.fullmatch(text):
        raise PublishIdRefusedError(
            f"A publish id has {MIN_LENGTH} to {MAX_LENGTH} letters, digits, hyphens, dots, "
            "underscores or tildes. Leave it out, and one is made."
        )


def rotate_publish_id(
    publisher: Publisher, *, text: str = "", now: datetime
) -> tuple[PublishId, str]:
    """Give the publisher a new id, `text` or random, and end the others after OVERLAP.

    Call it with the publisher's row locked. The text is returned only here. Raises
    PublishIdRefusedError.
    """
    text = text or new_publish_id()
    check_text(text)
    if PublishId.objects.filter(hash=hash_of(text)).exists():
        raise PublishIdRefusedError("This publish id is in use, or was. Choose another.")
    valid = PublishId.objects.filter(publisher=publisher).valid(now=now)
    if valid.count() >= MAX_VALID:
        raise PublishIdRefusedError(
            f"{MAX_VALID} publish ids of {publisher} are valid. End one first."
        )
    valid.filter(Q(expires_at=None) | Q(expires_at__gt=now + OVERLAP)).update(
        expires_at=now + OVERLAP
    )
    made = PublishId(publisher=publisher)
    made.set_text(text)
    made.save()
    return made, text


def end_publish_id(publish_id: PublishId, *, now: datetime) -> bool:
    """End a publish id now: the addresses answer 400 from here on.

    False if it had ended already.
    """
    return bool(PublishId.objects.filter(pk=publish_id.pk).valid(now=now).update(expires_at=now))


def publisher_of_id(text: str, *, now: datetime) -> Publisher | None:
    """Return the publisher with this valid id, and record the use to the minute.

    For an unknown id nothing is written.
    """
    rows = PublishId.objects.select_related("publisher").valid(now=now)
    row = rows.filter(hash=hash_of(text)).first()
    if row is None:
        return None
    stale = now - LAST_USED_PRECISION
    if row.last_used_at is None or row.last_used_at < stale:
        is_stale = Q(last_used_at=None) | Q(last_used_at__lt=stale)
        PublishId.objects.filter(is_stale, pk=row.pk).update(last_used_at=now)
    return row.publisher


def publish_addresses(text: str) -> list[str]:
    """Return both addresses; the first requires only the id, the second a login token as well."""
    base = settings.ENVIRONMENT.base_url.rstrip("/")
    return [f"{base}/{version}inbox/{{eventName}}/{text}" for version in ("v4/", "")]
