"""Storing the last requests of a built-in receiver: shortened, without credentials, a few of each.

Anybody with a receiver's URL can send to it, so everything stored has a limit: requests of a
receiver, bytes of a body and of headers; `MOST_RECEIVERS` limits the receivers. Retention removes
requests after a week (`forget_received_requests.sql`).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from django.conf import settings
from django.db import transaction
from django.db.models import F

from delivery.models import BuiltInReceiver, ReceivedRequest, SignatureCheck
from delivery.models.message import parse_public_id
from delivery.models.receiver import KEPT_BODY_BYTES, KEPT_HEADER_BYTES, KEPT_REQUESTS
from delivery.publishing.callback_urls import CALLBACK_URL
from delivery.publishing.reply_headers import REPLY_URL
from delivery.receivers.signatures import check_signature, senders_to
from subscriptions.changes import MASKED
from subscriptions.values.built_in_receivers import PATH, built_in_receivers, is_receiver_token

# Credentials of anybody, and URLs with the right to answer to the message; a subscription's own
# headers may be credentials, too.
_CREDENTIALS = frozenset(
    {"authorization", "proxy-authorization", "cookie", CALLBACK_URL, REPLY_URL}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrivedRequest:
    """A request as it arrived; names of headers are in lower case."""

    method: str
    headers: Mapping[str, str]
    body: bytes = field(repr=False)


def url_of(receiver: BuiltInReceiver) -> str:
    return built_in_receivers(settings.ENVIRONMENT.base_url).url_of(receiver.token)


def receivers_at(endpoints: Iterable[str]) -> dict[str, BuiltInReceiver]:
    """Return the built-in receivers among these endpoints, by endpoint."""
    tokens = {endpoint: endpoint.rpartition(PATH)[2] for endpoint in endpoints}
    rows = BuiltInReceiver.objects.filter(token__in=filter(is_receiver_token, tokens.values()))
    found = {row.token: row for row in rows}
    return {endpoint: found[token] for endpoint, token in tokens.items() if token in found}


def keep_request(receiver: BuiltInReceiver, sent: ArrivedRequest, *, now: datetime) -> None:
    """Check the signature, store the request, and forget all but the last requests."""
    senders = senders_to(url_of(receiver))
    checked = check_signature(sent.headers, sent.body, keys=senders.signing_keys, now=now)
    masked = _CREDENTIALS | senders.own_headers
    is_valid = checked is SignatureCheck.VALID
    with transaction.atomic():
        # First: the lock on the receiver's row makes concurrent requests count and forget in turn.
        if not BuiltInReceiver.objects.filter(pk=receiver.pk).update(received=F("received") + 1):
            return
        ReceivedRequest.objects.create(
            receiver=receiver,
            at=now,
            method=sent.method[:20],
            headers=_kept_headers(sent.headers, masked),
            body=sent.body[:KEPT_BODY_BYTES],
            size=len(sent.body),
            signature=checked,
            answer=receiver.answer,
            message_id=parse_public_id(sent.headers.get("webhook-id", "")) if is_valid else None,
        )
        _forget_earlier(receiver)


def _forget_earlier(receiver: BuiltInReceiver) -> None:
    rows = ReceivedRequest.objects.filter(receiver=receiver)
    oldest = rows.values_list("pk", flat=True).order_by("-pk")[KEPT_REQUESTS - 1 : KEPT_REQUESTS]
    for first_kept in oldest:
        rows.filter(pk__lt=first_kept).delete()


def _kept_headers(headers: Mapping[str, str], masked: frozenset[str]) -> list[tuple[str, str]]:
    """Return as many headers as may be kept, in alphabetical order, and `…` if there are more."""
    kept: list[tuple[str, str]] = []
    left = KEPT_HEADER_BYTES
    for name, value in sorted(headers.items()):
        shown = MASKED if name in masked else value.replace("\0", "\N{REPLACEMENT CHARACTER}")
        left -= len(name.encode()) + len(shown.encode(errors="replace"))
        if left < 0:
            return [*kept, ("…", "too many headers to be kept")]
        kept.append((name, shown))
    return kept
