"""The URL and headers of an attempt; they may be prepared a moment ahead."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings

from delivery.lifecycle.trace_context import TracedAttempt, handed_on
from delivery.lifecycle.traces import traces
from delivery.models.message import public_id
from delivery.publishing.callback_tokens import callback_key, callback_url
from delivery.publishing.reply_headers import (
    REPLY_URL,
    correlation,
    may_be_replied_to,
    reply_key,
    reply_url,
)
from delivery.senders.http.signing import signature
from delivery.senders.parcel import Endpoint, Parcel
from subscriptions.values.forwarding import forwarded_headers

# The signature contains its time; receivers allow for minutes.
KEEPS_FOR = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class Request:
    """The headers of an attempt to send this parcel to this endpoint.

    The `note` lists message headers that are missing.
    """

    parcel: Parcel
    endpoint: Endpoint
    made_at: datetime
    headers: dict[str, str]
    note: str = ""

    @property
    def url(self) -> str:
        if self.parcel.url:
            return self.parcel.url
        transformation = self.parcel.transformation
        return (
            with_path(self.endpoint.url, transformation.path)
            if transformation
            else self.endpoint.url
        )

    def suits(self, parcel: Parcel, endpoint: Endpoint, *, now: datetime) -> bool:
        """True if it can be used for that attempt."""
        is_fresh = self.made_at <= now < self.made_at + KEEPS_FOR
        return self.parcel is parcel and self.endpoint is endpoint and is_fresh

    def recorded_error(self, error: str) -> str:
        """Return the recorded error text of an attempt: the error, if any, and the note."""
        return f"{error}; {self.note}" if error and self.note else error or self.note


def traced_attempt(parcel: Parcel) -> TracedAttempt:
    """Return the parcel's next attempt as its trace needs it."""
    return TracedAttempt(
        message_id=parcel.message_id,
        delivery_id=parcel.delivery_id,
        number=parcel.attempts + 1,
        event=parcel.event,
        headers=parcel.headers or {},
    )


def with_path(url: str, path: str) -> str:
    """Append to the path of a URL, before its query."""
    if not path:
        return url
    base, mark, query = url.partition("?")
    return base.removesuffix("/") + path + mark + query


def make_request(parcel: Parcel, endpoint: Endpoint, *, now: datetime) -> Request:
    headers = _headers(parcel, endpoint, now=now)
    if parcel.headers is None or not endpoint.forward_headers:
        return Request(parcel, endpoint, now, headers)
    forwarded = forwarded_headers(
        parcel.headers, endpoint.forward_headers, own=_own_headers(parcel, endpoint)
    )
    return Request(parcel, endpoint, now, {**forwarded.headers, **headers}, forwarded.note)


def _own_headers(parcel: Parcel, endpoint: Endpoint) -> dict[str, str]:
    """Return the subscription's headers and those of its script; the script's override."""
    if parcel.transformation is None or not parcel.transformation.headers:
        return endpoint.headers
    made = parcel.transformation.headers
    names = {name.lower() for name in made}
    return {
        name: value for name, value in endpoint.headers.items() if name.lower() not in names
    } | dict(made)


def _headers(parcel: Parcel, endpoint: Endpoint, *, now: datetime) -> dict[str, str]:
    """Return the attempt's headers except the message's; Inturn's override the subscription's."""
    webhook_id = public_id(parcel.message_id)
    timestamp = int(now.timestamp())
    headers = _own_headers(parcel, endpoint) | {
        "webhook-id": webhook_id,
        "webhook-timestamp": str(timestamp),
        "inturn-event": parcel.event,
        "inturn-attempt": str(parcel.attempts + 1),
        "inturn-delivery": str(parcel.delivery_id),
    }
    if endpoint.signing_keys:
        headers["webhook-signature"] = signature(
            endpoint.signing_keys, webhook_id=webhook_id, timestamp=timestamp, body=parcel.body
        )
    if parcel.content_type:
        headers["Content-Type"] = parcel.content_type
    if parcel.redelivery:
        headers["inturn-redelivery"] = parcel.redelivery
    if parcel.replay_id is not None:
        headers["inturn-replay"] = str(parcel.replay_id)
    if parcel.callback_id is not None:
        headers["CallbackURL"] = callback_url(
            parcel.callback_id,
            base_url=settings.ENVIRONMENT.base_url,
            key=callback_key(settings.SECRET_KEY),
        )
    if parcel.headers is not None:
        headers |= _reply_headers(parcel, parcel.headers)
    trace = _trace_headers(parcel)
    return _added(headers, trace) if trace else headers


def _trace_headers(parcel: Parcel) -> dict[str, str]:
    """Return the trace that the receiver continues: ours, or that of the publisher unchanged."""
    tracing = traces()
    if tracing is not None:
        return tracing.attempt_headers(traced_attempt(parcel))
    return {} if parcel.headers is None else handed_on(parcel.headers)


def _added(headers: dict[str, str], trace: dict[str, str]) -> dict[str, str]:
    """Add the trace, unless the subscription has headers of its own for it."""
    own = {name.lower() for name in headers}
    return headers | {name: value for name, value in trace.items() if name not in own}


def _reply_headers(parcel: Parcel, stored: Mapping[str, str]) -> dict[str, str]:
    """Return the address for a reply, if a reply is wanted, and the message that it replies to."""
    headers = correlation(stored)
    if may_be_replied_to(stored, event=parcel.event, replay_id=parcel.replay_id):
        headers[REPLY_URL] = reply_url(
            parcel.delivery_id,
            base_url=settings.ENVIRONMENT.base_url,
            key=reply_key(settings.SECRET_KEY),
        )
    return headers
