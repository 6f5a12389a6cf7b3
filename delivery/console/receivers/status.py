"""The status of a built-in receiver: the last requests, and one of them with headers and body."""

from dataclasses import dataclass

from delivery.models import BuiltInReceiver, ReceivedRequest
from delivery.receivers.signatures import subscriptions_to
from delivery.receivers.stored_requests import url_of
from delivery.support.payload import Payload, payload_of
from subscriptions.models import Subscription

SHOWN_REQUESTS = 20
# Headers whose values are no payload: they are Inturn's own, or about the transport.
_PLAIN_HEADERS = frozenset({"host", "user-agent", "content-type", "content-length"})
_PLAIN_PREFIXES = ("webhook-", "inturn-")


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownRequest:
    """A request with the body as far as it is kept."""

    request: ReceivedRequest
    headers: list[tuple[str, str]]
    body: Payload

    @property
    def is_cut(self) -> bool:
        return self.request.size > self.body.size


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownReceiver:
    """The values of the page; `opened` is None if nothing was received yet, or is kept no more."""

    url: str
    subscriptions: list[Subscription]
    requests: list[ReceivedRequest]
    opened: ShownRequest | None


def read_receiver(receiver: BuiltInReceiver, *, chosen: int | None, may_see: bool) -> ShownReceiver:
    """Load the page; the newest request is opened unless another is chosen.

    Without the right to see payloads, headers of the message are masked.
    """
    url = url_of(receiver)
    rows = list(receiver.requests.defer("headers", "body")[:SHOWN_REQUESTS])
    opened = receiver.requests.filter(pk=chosen).first() if chosen else receiver.requests.first()
    return ShownReceiver(
        url=url,
        subscriptions=subscriptions_to(url),
        requests=rows,
        opened=None if opened is None else _shown(opened, may_see=may_see),
    )


def _shown(request: ReceivedRequest, *, may_see: bool) -> ShownRequest:
    return ShownRequest(
        request=request,
        headers=[
            (name, value if may_see or _is_plain(name) else "•••")
            for name, value in request.headers
        ],
        body=payload_of(bytes(request.body)),
    )


def _is_plain(name: str) -> bool:
    return name in _PLAIN_HEADERS or name.startswith(_PLAIN_PREFIXES)
