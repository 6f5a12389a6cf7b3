"""The headers of a publisher's request: which of them belong to the message, and their limits."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from delivery.incoming.problems import Problem
from subscriptions.filters import header_name
from subscriptions.values.forwarding import FORWARD_AUTHORIZATION, REPLIED_PREFIX
from subscriptions.values.header_values import HOP_BY_HOP, MAX_VALUE_LENGTH, is_header_name

MAX_HEADERS = 100
MAX_HEADER_BYTES = 32 * 1024
MAX_IDEMPOTENCY_KEY_LENGTH = 255


# Headers about the transport, not about the message, and credentials for Inturn alone.
UNSTORED = HOP_BY_HOP | {
    "host",
    "content-length",
    "expect",
    "cookie",
    "cookie2",
    "authorization",
    "proxy",
    FORWARD_AUTHORIZATION,
}
# Only Inturn sets the answered message of a reply.
_UNSTORED_PREFIXES = ("proxy-", REPLIED_PREFIX)
# The key under which `config.web.environ` lists the headers with lost values, comma-separated.
UNREADABLE = "inturn.unreadable_headers"

# Receivers would get the compressed bytes without this header, and filters could not read them.
_COMPRESSIONS = frozenset({"gzip", "x-gzip", "deflate", "br", "zstd", "compress"})

_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_SURROGATE = re.compile(r"[\ud800-\udfff]")
IDEMPOTENCY_KEY = {"type": "string", "pattern": "^[!-~]([ -~]{0,253}[!-~])?$"}
_IDEMPOTENCY_KEY = re.compile(r"[\x21-\x7e][\x20-\x7e]*")


def sent_headers(environ: Mapping[str, Any]) -> dict[str, str]:
    """Return the headers of a request to store, by lower-case hyphenated name; raise Problem.

    A web server unable to pass on a value with bytes beyond ASCII lists the name under UNREADABLE:
    to refuse the request is better than to store an empty value.
    """
    for name in environ.get(UNREADABLE, "").split(","):
        if name and _is_stored(header_name(name)):
            detail = (
                f"The value of the header {name} is not ASCII; write it in ASCII, "
                "for instance as %XX, or put it into the body."
            )
            raise Problem(400, "invalid", detail)
    headers = {
        header_name(key[5:]): _decoded(value)
        for key, value in environ.items()
        if key.startswith("HTTP_")
    }
    if content_type := environ.get("CONTENT_TYPE"):
        headers["content-type"] = _decoded(content_type)
    return storable_headers(headers.items())


def storable_headers(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return the headers to store, without the others; raise Problem for invalid headers."""
    headers = {name: value for name, value in pairs if _is_stored(name)}
    if (
        len(headers) > MAX_HEADERS
        or sum(map(len, headers)) + sum(map(len, headers.values())) > MAX_HEADER_BYTES
    ):
        raise Problem(
            431,
            "headers-too-large",
            (
                f"At most {MAX_HEADERS} headers of {MAX_HEADER_BYTES} characters together; "
                "put the rest into the body."
            ),
        )
    for name, value in headers.items():
        _check(name, value)
    if headers.get("content-encoding", "").strip().lower() in _COMPRESSIONS:
        detail = (
            "Send the body as it is, without Content-Encoding; "
            "or compressed, with the Content-Type application/gzip."
        )
        raise Problem(415, "unsupported-encoding", detail)
    return headers


def idempotency_key(headers: Mapping[str, str]) -> str | None:
    key = headers.get("idempotency-key")
    if key is None:
        return None
    if len(key) > MAX_IDEMPOTENCY_KEY_LENGTH or not _IDEMPOTENCY_KEY.fullmatch(key):
        raise Problem(
            400,
            "invalid",
            (
                f"An idempotency key is 1 to {MAX_IDEMPOTENCY_KEY_LENGTH} visible ASCII "
                "characters, such as a UUID."
            ),
        )
    return key


def forwarded_credential(environ: Mapping[str, Any]) -> str:
    """Return the credential to send on as Authorization; empty if there is none.

    It must never be stored.
    """
    unreadable = map(header_name, environ.get(UNREADABLE, "").split(","))
    credential = str(environ.get("HTTP_X_FORWARD_AUTHORIZATION", "")).strip(" \t")
    is_fit = credential.isascii() and not _CONTROL.search(credential)
    if FORWARD_AUTHORIZATION in unreadable or not is_fit or len(credential) > MAX_VALUE_LENGTH:
        detail = (
            f"X-Forward-Authorization is one line of at most {MAX_VALUE_LENGTH} ASCII characters."
        )
        raise Problem(400, "invalid", detail)
    return credential


def _is_stored(name: str) -> bool:
    return name not in UNSTORED and not name.startswith(_UNSTORED_PREFIXES)


def _check(name: str, value: str) -> None:
    if not is_header_name(name):
        raise Problem(400, "invalid", f"{name[:50]!r} is not a header name.")
    if _CONTROL.search(value) or _SURROGATE.search(value):
        raise Problem(
            400, "invalid", f"The value of the header {name} holds a control character; remove it."
        )


def _decoded(value: str) -> str:
    """Decode a header's value.

    WSGI decodes bytes as Latin-1; most values beyond ASCII are UTF-8.
    """
    if value.isascii():
        return value
    try:
        return value.encode("latin-1").decode()
    except UnicodeError:
        return value
