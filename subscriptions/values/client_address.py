"""Where a request comes from, as far as it can be believed."""

import ipaddress

from django.conf import settings
from django.http import HttpRequest

# What one customer of a provider has, so that it counts as one.
IPV6_PREFIX = 64


def client_address(request: HttpRequest) -> str | None:
    """Return the client's address; None when there is none, as with a request that came by no network.

    Where INTURN_BASE_URL is https a proxy stands before us: the last address of X-Forwarded-For is the one that it
    saw, and all before that may be made up. Anywhere else the header is a stranger's, and does not count.
    """
    given = request.META.get("REMOTE_ADDR", "")
    if settings.SECURE_PROXY_SSL_HEADER is not None:
        given = request.META.get("HTTP_X_FORWARDED_FOR", "").rpartition(",")[2].strip() or given
    try:
        # The zone of a link-local address means nothing elsewhere, and PostgreSQL stores none.
        return str(ipaddress.ip_address(given.partition("%")[0]))
    except ValueError:
        return None


def origin_of(address: str | None) -> str:
    """Return what an address counts as: itself, or the network of an IPv6 one, of which anybody has a great many."""
    if address is None:
        return ""
    parsed = ipaddress.ip_address(address)
    if parsed.version == 4:
        return str(parsed)
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(ipaddress.ip_network((parsed, IPV6_PREFIX), strict=False))
