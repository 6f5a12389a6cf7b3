"""The URL for answers: the header `CallbackURL` of a message.

It is checked like an endpoint, except for the addresses of a host name: publishing does not wait
for foreign name servers. The addresses are checked when the answer is delivered, like those of
every connection.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from django.conf import settings

from delivery.models import Callback
from delivery.models.callback import MAX_HOPS
from delivery.publishing.callback_tokens import callback_key, read_token
from subscriptions.values.addresses import AddressRefusedError
from subscriptions.values.endpoints import EndpointError, check_literal, parse_url

CALLBACK_URL = "callbackurl"

_CREDENTIALS = re.compile(r"[^:]+://[^/?#]*@")


class CallbackRefusedError(Exception):
    """This URL or this answer is refused; the message says why."""

    def __init__(self, detail: str, *, status: int = 400) -> None:
        super().__init__(detail)
        self.detail = detail
        self.status = status


@dataclass(frozen=True, slots=True)
class CallbackTarget:
    """The URL for an answer; `hop` callbacks lead there, including this one."""

    url: str
    hop: int


def callback_target(headers: Mapping[str, str], *, hops: int = 0) -> CallbackTarget | None:
    """Return the URL for an answer, None if absent; raise CallbackRefusedError.

    `hops` callbacks have led here already.
    """
    text = headers.get(CALLBACK_URL)
    if text is None:
        return None
    url = _checked_url(text)
    hop = max(hops, _hops_of_ours(url)) + 1
    if hop > MAX_HOPS:
        raise CallbackRefusedError(
            f"More than {MAX_HOPS} callbacks led to one another, so this chain ends here: "
            "leave CallbackURL out."
        )
    return CallbackTarget(url, hop)


def _checked_url(text: str) -> str:
    if _CREDENTIALS.match(text):
        raise CallbackRefusedError(
            "CallbackURL: leave user and password out; it is called without credentials."
        )
    try:
        parsed = parse_url(text)
        check_literal(parsed, allowed_networks=settings.ENVIRONMENT.allowed_networks)
    except (EndpointError, AddressRefusedError) as error:
        raise CallbackRefusedError(f"CallbackURL: {error}") from None
    return parsed.url


def _hops_of_ours(url: str) -> int:
    """Return how many callbacks led to a URL, itself a callback, 0 for any other.

    It is recognised by the token, because this installation may have several names.
    """
    callback_id = read_token(url.rpartition("/")[2], key=callback_key(settings.SECRET_KEY))
    if callback_id is None:
        return 0
    return Callback.objects.filter(pk=callback_id).values_list("hop", flat=True).first() or 0
