"""The URLs of Inturn's built-in receivers, which Inturn may call whatever their address is.

Inturn's own web server usually has a forbidden address: by default it listens on the loopback.
Nevertheless a newcomer's first message must reach a built-in receiver without any setting, and the
other addresses of this machine, and all other pages of the web server, must stay refused. So the
exception is no address and no network, but a form of URL:

- A URL is a built-in receiver's only if the encoded form is, character by character,
  INTURN_BASE_URL followed by `/receiver/` and a token of fixed length. The administrator chose this
  host and port, and the view behind the path answers, records and calls nothing.
  `http://localhost:8000/…` instead of `http://127.0.0.1:8000/…`, another name with the same
  address, another port or path, a query, and a script's longer path are different texts, and stay
  refused.
- Only the URL counts, never an answer: redirects are not followed.
- Callers must send such a request on connections for no other URL (`delivery.senders.http.client`):
  connections are guarded when they are made, so a kept connection to the web server would lead any
  later request to other pages of it.
- If the base URL has a name, the addresses are those returned by this machine's resolver on
  connecting. The owner of the name can lead the request to another host and port, but can choose
  neither the path nor, without a subscription, the body.
"""

import re
from dataclasses import dataclass
from functools import lru_cache

from subscriptions.values.endpoints import EndpointError, parse_endpoint

PATH = "/receiver/"
# 24 random bytes in base64: too many to be guessed.
_TOKEN = re.compile(r"[A-Za-z0-9_-]{32}")


@dataclass(frozen=True, slots=True)
class BuiltInReceiverUrls:
    """The built-in receivers of an installation; `url in own` takes a URL's encoded form."""

    beginning: str

    def __contains__(self, url: object) -> bool:
        return (
            isinstance(url, str)
            and url.startswith(self.beginning)
            and _TOKEN.fullmatch(url[len(self.beginning) :]) is not None
        )

    def url_of(self, token: str) -> str:
        return f"{self.beginning}{token}"


@lru_cache(maxsize=16)
def built_in_receivers(base_url: str) -> BuiltInReceiverUrls:
    """Return the receivers under INTURN_BASE_URL."""
    text = f"{base_url}{PATH}"
    try:
        return BuiltInReceiverUrls(parse_endpoint(text).url)
    except EndpointError:
        # A base URL unusable as endpoint, such as a name with two dots: no endpoint has this
        # beginning.
        return BuiltInReceiverUrls(text)


def is_receiver_token(text: str) -> bool:
    """Return whether a text has the form of a receiver's token."""
    return _TOKEN.fullmatch(text) is not None
