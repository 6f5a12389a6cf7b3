"""The endpoint of a subscription: a URL, preceded by the method if it is not POST."""

import re
from collections.abc import Callable, Collection, Container
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from urllib.parse import SplitResult, quote, urlsplit

import idna
from django.core.exceptions import ValidationError

from subscriptions.values.addresses import Network, check_address
from subscriptions.values.resolver import UnresolvedError, is_address, resolver

METHODS = ("POST", "PUT", "PATCH", "DELETE", "GET")
MAX_ENDPOINT_LENGTH = 2000
# Replaces the URL if the script of a SYNC subscription answers and no endpoint is called.
INTERNAL = "webr://"

_METHOD_PREFIX = re.compile(r"([A-Za-z]+):(?=https?:)", re.IGNORECASE)
# Characters read differently by some clients: white space, controls and backslashes.
_AMBIGUOUS = re.compile(r"[\x00-\x20\x7f-\xa0\\\u2028\u2029]")
_NUMERIC_LABEL = re.compile(r"[0-9]+|0[xX][0-9A-Fa-f]*")
_HOST_LABEL = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)")
_MAX_HOST_LENGTH = 253
_URL_CHARACTERS = "%/:=&?~+!$,;'@()*[]"


class EndpointError(ValueError):
    """This is not an endpoint; the message says how to correct it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedEndpoint:
    """`url` is pure ASCII, the host IDNA-encoded, so every client reads it the same way."""

    method: str
    url: str
    host: str
    port: int


def parse_endpoint(text: str) -> ParsedEndpoint:
    """Parse `https://…`, or `PATCH:https://…` with any of METHODS; raises EndpointError."""
    _refuse_ambiguous(text)
    prefix = _METHOD_PREFIX.match(text)
    method = prefix[1].upper() if prefix else "POST"
    if method not in METHODS:
        raise EndpointError(
            f"The method {method} is not possible; use one of {', '.join(METHODS)}."
        )
    parts = _split(text[prefix.end() :] if prefix else text)
    host = _host(parts)
    port = _port(parts)
    url = _url(parts, host=host)
    if text.endswith("?") and not parts.query:
        # `urlsplit` does not tell an empty query from none, but a receiver with a signed URL does.
        url += "?"
    return ParsedEndpoint(method=method, url=url, host=host, port=port)


def parse_url(text: str) -> ParsedEndpoint:
    """Parse a URL without a method; raises EndpointError, also if it is too long once encoded."""
    if _METHOD_PREFIX.match(text):
        raise EndpointError("Write it without a method in front: https://…")
    parsed = parse_endpoint(text)
    if len(parsed.url) > MAX_ENDPOINT_LENGTH:
        raise EndpointError(f"Encoded, the URL has more than {MAX_ENDPOINT_LENGTH} characters.")
    return parsed


def validate_endpoint(text: str) -> None:
    """Refuse text that is neither an endpoint nor `webr://`; nothing is resolved."""
    if text and text != INTERNAL:
        _validate(text, parse_endpoint)


def validate_url(text: str) -> None:
    """Refuse text that is not a URL without a method; nothing is resolved."""
    if text:
        _validate(text, parse_url)


def _validate(text: str, parse: Callable[[str], ParsedEndpoint]) -> None:
    try:
        parse(text)
    except EndpointError as error:
        raise ValidationError(str(error)) from None


def check_endpoint(
    text: str, *, allowed_networks: Collection[Network], built_in_receivers: Container[str] = ()
) -> ParsedEndpoint:
    """Parse an endpoint; raises AddressRefusedError if any address of the host is forbidden.

    The URLs of `built_in_receivers` are accepted whatever their address is.

    A host without an address yet, or not resolved within RESOLVE_SECONDS, is accepted: it may be
    set up later. This is safe, because the senders check the very address of the connection.
    """
    endpoint = parse_endpoint(text)
    if endpoint.url in built_in_receivers:
        return endpoint
    for address in addresses_of(endpoint.host):
        check_address(address, allowed_networks=allowed_networks)
    return endpoint


def check_literal(endpoint: ParsedEndpoint, *, allowed_networks: Collection[Network]) -> None:
    """Raise AddressRefusedError if the host is a forbidden address, or a name of this machine.

    No name server is queried: the addresses of other names are checked on connecting.
    """
    name = endpoint.host.removesuffix(".")
    if name == "localhost" or name.endswith(".localhost"):
        check_address("127.0.0.1", allowed_networks=allowed_networks)
    elif is_address(endpoint.host):
        check_address(endpoint.host, allowed_networks=allowed_networks)


def _refuse_ambiguous(text: str) -> None:
    # In bytes: an index serves look-ups by endpoint, and bounds the size of an entry.
    if len(text.encode(errors="surrogatepass")) > MAX_ENDPOINT_LENGTH:
        raise EndpointError(
            f"An endpoint has at most {MAX_ENDPOINT_LENGTH} characters; "
            "those beyond ASCII count two to four."
        )
    if _AMBIGUOUS.search(text):
        raise EndpointError(
            "Remove the white space, control characters and backslashes from the URL."
        )
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise EndpointError("The URL holds half a character (a lone surrogate); write it again.")


def _split(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise EndpointError(f"This is not a URL: {error}.") from None
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise EndpointError(
            "Write a URL that begins with https:// or http://, e.g. https://example.com/hook."
        )
    if "@" in parts.netloc:
        raise EndpointError("Give user and password as the subscription's auth, not in the URL.")
    if "#" in url:
        raise EndpointError("Remove the # and the text after it: it is never sent.")
    return parts


def _host(parts: SplitResult) -> str:
    host = parts.hostname or ""
    if parts.netloc.startswith("["):
        return _ipv6(host)
    if _NUMERIC_LABEL.fullmatch(host.rstrip(".").rpartition(".")[2]):
        return _ipv4(host)
    try:
        ascii_host = host if host.isascii() else idna.encode(host, uts46=True).decode()
    except (idna.IDNAError, UnicodeError):
        raise EndpointError(f"{host} is not a host name.") from None
    labels = ascii_host.removesuffix(".").split(".")
    if len(ascii_host) > _MAX_HOST_LENGTH or not all(
        _HOST_LABEL.fullmatch(label) for label in labels
    ):
        raise EndpointError(f"{host} is not a host name." if host else "The URL has no host.")
    if _NUMERIC_LABEL.fullmatch(labels[-1]):
        raise EndpointError(f"{host} is not a host name: the last part is a number.")
    return ascii_host


def _ipv6(host: str) -> str:
    try:
        if "%" in host:
            raise AddressValueError
        return f"[{IPv6Address(host)}]"
    except AddressValueError:
        raise EndpointError(f"[{host}] is not an IPv6 address; write it without a zone.") from None


def _ipv4(host: str) -> str:
    # Some clients read 127.1, 2130706433 and 0x7f000001 as 127.0.0.1.
    try:
        return str(IPv4Address(host))
    except AddressValueError:
        raise EndpointError(
            f"{host} is not an IPv4 address; write four numbers, e.g. 192.0.2.7."
        ) from None


def _port(parts: SplitResult) -> int:
    try:
        port = parts.port
    except ValueError:
        port = 0
    if port == 0 or parts.netloc.endswith(":"):
        raise EndpointError("A port is a number from 1 to 65535.")
    return port or (443 if parts.scheme == "https" else 80)


def _url(parts: SplitResult, *, host: str) -> str:
    netloc = host if parts.port is None else f"{host}:{parts.port}"
    query = f"?{quote(parts.query, safe=_URL_CHARACTERS)}" if parts.query else ""
    return f"{parts.scheme}://{netloc}{quote(parts.path or '/', safe=_URL_CHARACTERS)}{query}"


def addresses_of(host: str) -> list[str]:
    """Resolve a host within RESOLVE_SECONDS; an empty list on failure or time-out."""
    try:
        return resolver.addresses_of(host)
    except UnresolvedError:
        return []
