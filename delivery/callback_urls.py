"""Where an answer is wanted: the header `CallbackURL` of a message, checked as an endpoint is."""

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from django.conf import settings

from delivery.callback_tokens import callback_key, read_token
from delivery.models import Callback
from delivery.models.callback import MAX_HOPS
from subscriptions.addresses import AddressRefusedError
from subscriptions.endpoints import EndpointError, check_endpoint, parse_url

CALLBACK_URL = "callbackurl"
# How long a host that was resolved is believed: a batch may name one a thousand times.
RESOLVED_SECONDS = 10

_CREDENTIALS = re.compile(r"[^:]+://[^/?#]*@")


class CallbackRefusedError(Exception):
    """This URL cannot be answered to, or this answer cannot be taken; the message says why."""

    def __init__(self, detail: str, *, status: int = 400) -> None:
        super().__init__(detail)
        self.detail = detail
        self.status = status


@dataclass(frozen=True, slots=True)
class Wanted:
    """Where an answer is wanted; `hop` callbacks lead there, this one included."""

    url: str
    hop: int


def wanted(headers: Mapping[str, str], *, hops: int = 0) -> Wanted | None:
    """Return where an answer is wanted, None when nowhere; raises CallbackRefusedError.

    `hops` led here already. It may ask the resolver, which takes longer than a transaction should.
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
    return Wanted(url, hop)


def _checked_url(given: str) -> str:
    if _CREDENTIALS.match(given):
        raise CallbackRefusedError(
            "CallbackURL: leave user and password out; it is called without credentials."
        )
    try:
        parsed = parse_url(given)
    except EndpointError as error:
        raise CallbackRefusedError(f"CallbackURL: {error}") from None
    if refusal := _refusal(parsed.host, parsed.port, int(time.monotonic() / RESOLVED_SECONDS)):
        raise CallbackRefusedError(f"CallbackURL: {refusal}")
    return parsed.url


@lru_cache(maxsize=1_000)
def _refusal(host: str, port: int, _period: int) -> str:
    """Return why the guard refuses a host, "" if it does not."""
    try:
        check_endpoint(f"http://{host}:{port}/", allowed_networks=settings.ENVIRONMENT.allowed_networks)
    except AddressRefusedError as error:
        return str(error)
    return ""


def _hops_of_ours(url: str) -> int:
    """Return how many callbacks led to a URL that is one itself, 0 for any other.

    By its token, for this installation may have several names.
    """
    callback_id = read_token(url.rpartition("/")[2], key=callback_key(settings.SECRET_KEY))
    if callback_id is None:
        return 0
    return Callback.objects.filter(pk=callback_id).values_list("hop", flat=True).first() or 0
