"""Checking the signature of a received request, as the library of Standard Webhooks does."""

import hmac
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from delivery.database import queries
from delivery.models import SignatureCheck
from delivery.senders.endpoints import endpoint_of
from delivery.senders.http.signing import signature
from subscriptions.models import Subscription
from subscriptions.values.endpoints import METHODS

# As in the library: older and newer requests may be repetitions by somebody else.
TOLERANCE_SECONDS = 300
# Receivers have few subscriptions; those beyond are not tried.
_MOST_SUBSCRIPTIONS = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceiverSenders:
    """The signing secrets of the subscriptions with a receiver's URL, and the headers they add."""

    signing_keys: tuple[bytes, ...]
    own_headers: frozenset[str]


def subscriptions_to(url: str) -> list[Subscription]:
    """Return the first subscriptions whose endpoint is this URL, with any method."""
    texts = [url, *(f"{method}:{url}" for method in METHODS)]
    rows = Subscription.objects.filter(endpoint__in=texts).select_related("subscriber")
    return list(rows.defer("headers", "auth").order_by("pk")[:_MOST_SUBSCRIPTIONS])


def senders_to(url: str) -> ReceiverSenders:
    """Load the senders to a receiver. The names of their own headers are in lower case."""
    ids = [subscription.pk for subscription in subscriptions_to(url)]
    rows = queries.named_rows("endpoints", {"subscription": ids}) if ids else []
    endpoints = [endpoint_of(row) for row in rows]
    return ReceiverSenders(
        signing_keys=tuple(key for endpoint in endpoints for key in endpoint.signing_keys),
        own_headers=frozenset(name.lower() for endpoint in endpoints for name in endpoint.headers),
    )


def check_signature(
    headers: Mapping[str, str], body: bytes, *, keys: Iterable[bytes], now: datetime
) -> SignatureCheck:
    """Return whether any of the keys signed this request at about this time.

    Names of headers are in lower case.
    """
    sent = headers.get("webhook-signature")
    keys = tuple(keys)
    if not sent:
        return SignatureCheck.UNSIGNED
    if not keys:
        return SignatureCheck.UNKNOWN
    timestamp = headers.get("webhook-timestamp", "")
    if not (timestamp.isascii() and timestamp.isdigit() and len(timestamp) < 12):
        return SignatureCheck.INVALID
    if abs(now.timestamp() - int(timestamp)) > TOLERANCE_SECONDS:
        return SignatureCheck.INVALID
    wanted = signature(
        keys, webhook_id=headers.get("webhook-id", ""), timestamp=int(timestamp), body=body
    )
    is_valid = any(
        hmac.compare_digest(sent_signature.encode(), other.encode())
        for sent_signature in sent.split()
        for other in wanted.split()
    )
    return SignatureCheck.VALID if is_valid else SignatureCheck.INVALID
