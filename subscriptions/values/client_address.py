"""The address of a client, as far as it can be trusted."""

import ipaddress
from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.http import HttpRequest

# A provider's customer has a network of this size, so it counts as a single origin.
IPV6_PREFIX = 64


def client_address(request: HttpRequest) -> str | None:
    """Return the client's address; None if absent, as for a request without a network."""
    return address_of(request.META)


def address_of(environ: Mapping[str, Any]) -> str | None:
    """Return the address of the client of a WSGI environ, as `client_address` does.

    If INTURN_BASE_URL is https and our server has no TLS files, a proxy is in front: the last
    address of X-Forwarded-For is the address seen by the proxy, and all earlier ones may be forged.
    Without a proxy the client itself sets the header, and it is ignored.
    """
    address = environ.get("REMOTE_ADDR", "")
    if settings.SECURE_PROXY_SSL_HEADER is not None:
        address = environ.get("HTTP_X_FORWARDED_FOR", "").rpartition(",")[2].strip() or address
    try:
        # The zone of a link-local address means nothing on another machine, and PostgreSQL stores
        # none.
        return str(ipaddress.ip_address(address.partition("%")[0]))
    except ValueError:
        return None


def origin_of(address: str | None) -> str:
    """Return the origin to count by: an IPv4 address, or the network of an IPv6 address.

    Anybody with IPv6 has a great many addresses.
    """
    if address is None:
        return ""
    parsed = ipaddress.ip_address(address)
    if parsed.version == 4:
        return str(parsed)
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(ipaddress.ip_network((parsed, IPV6_PREFIX), strict=False))
