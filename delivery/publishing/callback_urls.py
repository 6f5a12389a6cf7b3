"""Where an answer is wanted: the header `CallbackURL` of a message.

It is checked as an endpoint is, but for the addresses of a host name: publishing does not wait for the name servers of
strangers. They are checked when the answer is delivered, as every address is that is connected to.
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
    """This URL cannot be answered to, or this answer cannot be taken; the message says why."""

    def __init__(self, detail: str, *, status: int = 400) -> None:
        super().__init__(detail)
        self.detail = detail
        self.status = status


@dataclass(frozen=True, slots=True)
class CallbackTarget:
    """Where an answer is wanted; `hop` callbacks lead there, this one included."""

    url: str
    hop: int


def wanted(headers: Mapping[str, str], *, hops: int = 0) -> CallbackTarget | None:
    """Return where an answer is wanted, None when nowhere; raises CallbackRefusedError.

    `hops` led here already.
    """
    given = headers.get(CALLBACK_URL)
    if given is None:
        return None
    url = _checked_url(given)
    hop = max(hops, _hops_of_ours(url)) + 1
    if hop > MAX_HOPS:
        raise CallbackRefusedError(
            f"More than {MAX_HOPS} callbacks led to one another, so this chain ends here: leave CallbackURL out."
        )
    return CallbackTarget(url, hop)


def _checked_url(given: str) -> str:
    if _CREDENTIALS.match(given):
        raise CallbackRefusedError(
            "CallbackURL: leave user and password out; it is called without credentials."
        )
    try:
        parsed = parse_url(given)
        check_literal(parsed, allowed_networks=settings.ENVIRONMENT.allowed_networks)
    except (EndpointError, AddressRefusedError) as error:
        raise CallbackRefusedError(f"CallbackURL: {error}") from None
    return parsed.url


def _hops_of_ours(url: str) -> int:
    """Return how many callbacks led to a URL that is one itself, 0 for any other.

    By its token, for this installation may have several names.
    """
    callback_id = read_token(url.rpartition("/")[2], key=callback_key(settings.SECRET_KEY))
    if callback_id is None:
        return 0
    return Callback.objects.filter(pk=callback_id).values_list("hop", flat=True).first() or 0
