"""The requests of a delivery, rebuilt from the subscription as it is now, without secrets.

Only the body of a request is stored. Time and signature are computed for each attempt, so they are
described. The values of the subscription's own headers and credentials are secrets, so variables
stand for them.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from django.conf import settings

from delivery.lifecycle.trace_context import handed_on
from delivery.models import Attempt, Delivery, Message, ScriptOutput
from delivery.models.message import public_id
from delivery.publishing.reply_headers import REPLY_URL, correlation, may_be_replied_to
from delivery.senders.http.request import with_path
from subscriptions.changes import MASKED
from subscriptions.models import Subscription
from subscriptions.values.endpoints import EndpointError, parse_endpoint
from subscriptions.values.forwarding import FORWARD_AUTHORIZATION, forwarded_headers
from subscriptions.values.header_values import with_shared

TIME, SIGNATURE, KEY, TOKEN = "$TIME", "$SIGNATURE", "$KEY", "$TOKEN"


@dataclass(frozen=True, slots=True)
class Header:
    """A header of a request.

    `variable` is Inturn's placeholder for a hidden value; it follows `value`. Text from others is
    never used as a placeholder. `is_payload`: the header comes from the message and is shown only
    to users who may see payloads.
    """

    name: str
    value: str
    variable: str = ""
    is_payload: bool = False

    def __str__(self) -> str:
        return f"{self.name}: {self.value}{self.variable}"

    @property
    def masked(self) -> str:
        return f"{self.name}: {MASKED}" if self.is_payload else str(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class SentRequest:
    """A request to show, with `headers` in the order of display."""

    method: str
    url: str
    headers: tuple[Header, ...]
    masked_url: str = ""

    @property
    def head(self) -> str:
        return "\n".join([f"{self.method} {self.url}", *map(str, self.headers)])

    @property
    def masked_head(self) -> str:
        """The head of the request for users who may not see payloads."""
        return "\n".join(
            [
                f"{self.method} {self.masked_url or self.url}",
                *(header.masked for header in self.headers),
            ]
        )


def sent_request(delivery: Delivery, *, attempt: Attempt | None = None) -> SentRequest:
    """Return the request of a past attempt, or of the next one."""
    made = script_output(delivery)
    method, url = target(delivery, path=made.path if made else "")
    number = delivery.attempts + 1 if attempt is None else attempt.number
    headers = [
        Header("webhook-id", public_id(delivery.message_id)),
        _time(attempt),
        Header("webhook-signature", "v1,", SIGNATURE),
        Header("inturn-event", delivery.message.event_type.name),
        Header("inturn-attempt", str(number)),
        Header("inturn-delivery", str(delivery.pk)),
    ]
    if content_type := (made.content_type if made else "") or content_type_of(delivery.message):
        headers.append(Header("Content-Type", content_type))
    if delivery.redelivery and number > delivery.attempts:
        headers.append(Header("inturn-redelivery", delivery.redelivery))
    if delivery.replay_id is not None:
        headers.append(Header("inturn-replay", str(delivery.replay_id)))
    headers.extend(_of_replies(delivery))
    for name, value in (made.headers if made else {}).items():
        headers.append(Header(name, value, is_payload=True))
    names = {header.name.lower() for header in headers}
    own = [
        header
        for header in secret_headers(delivery.subscription)
        if header.name.lower() not in names
    ]
    masked_url = target(delivery, path="/•••")[1] if made and made.path else ""
    # While Inturn exports traces, it puts an attempt between publisher and receiver.
    trace = _trace(delivery, own)
    forwarded = _forwarded(delivery, [*own, *trace], made=made)
    shown = (*headers, *own, *trace, *forwarded)
    return SentRequest(method=method, url=url, headers=shown, masked_url=masked_url)


def _of_replies(delivery: Delivery) -> list[Header]:
    """Return the address for a reply, whose token is a secret, and the message replied to."""
    stored, event = delivery.message.headers, delivery.message.event_type.name
    headers = [Header(name, value) for name, value in correlation(stored).items()]
    if may_be_replied_to(stored, event=event, replay_id=delivery.replay_id):
        headers.append(Header(REPLY_URL, f"{settings.ENVIRONMENT.base_url}/replies/", TOKEN))
    return headers


def _trace(delivery: Delivery, own: Sequence[Header]) -> list[Header]:
    """Return the publisher's trace headers, unless the subscription has own trace headers."""
    names = {header.name.lower() for header in own}
    return [
        Header(name, value, is_payload=True)
        for name, value in handed_on(delivery.message.headers).items()
        if name not in names
    ]


def _forwarded(
    delivery: Delivery, own: Sequence[Header], *, made: ScriptOutput | None
) -> list[Header]:
    """Return the forwarded headers of the message.

    Load them only if the subscription forwards any.
    """
    subscription = delivery.subscription
    if not subscription.forward_headers:
        return []
    shared = subscription.subscriber.headers or {}
    stored = {
        header.name: subscription.headers.get(header.name, shared.get(header.name, ""))
        for header in own
    } | (made.headers if made else {})
    forwarded = forwarded_headers(
        delivery.message.headers, subscription.forward_headers, own=stored
    )
    return [Header(name, value, is_payload=True) for name, value in forwarded.headers.items()]


def _time(attempt: Attempt | None) -> Header:
    if attempt is None:
        return Header("webhook-timestamp", "", TIME)
    return Header("webhook-timestamp", str(int(attempt.started_at.timestamp())))


def script_output(delivery: Delivery) -> ScriptOutput | None:
    """Return the output of the subscription's script; None also before the first attempt."""
    if not delivery.subscription.script_version:
        return None
    # The related object does not exist when there is no row.
    return getattr(delivery, "script_output", None)


def target(delivery: Delivery, *, path: str = "") -> tuple[str, str]:
    """Return the method and the URL.

    An answer to a callback goes to the publisher's URL.
    """
    if delivery.callback is not None:
        return "POST", delivery.callback.url
    try:
        endpoint = parse_endpoint(delivery.subscription.endpoint)
    except EndpointError:
        return "POST", delivery.subscription.endpoint
    return endpoint.method, with_path(endpoint.url, path)


def content_type_of(message: Message) -> str:
    return message.content_type or message.event_type.content_type


def secret_headers(subscription: Subscription) -> list[Header]:
    """Return the headers of subscription and subscriber, and the credentials.

    A variable stands for each value.
    """
    has_credential = (
        subscription.auth.get("type", "none") != "none" or subscription.forward_authorization
    )
    names = with_shared(
        subscription.headers, subscription.subscriber.headers, has_credential=has_credential
    )
    headers = [Header(name, "", variable(name)) for name in names]
    match subscription.auth.get("type"):
        case "basic":
            headers.append(Header("Authorization", "Basic ", KEY))
        case "bearer":
            headers.append(Header("Authorization", "Bearer ", KEY))
    if subscription.forward_authorization:
        headers.append(Header("Authorization", "", variable(FORWARD_AUTHORIZATION)))
    return headers


def variable(name: str) -> str:
    """Return a variable's name such as `$X_API_KEY`, valid in every shell."""
    words = re.sub(r"[^A-Z0-9]+", "_", name.upper()).strip("_")
    return f"$HEADER_{words}" if not words or words[0].isdigit() else f"${words}"
