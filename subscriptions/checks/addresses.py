"""The addresses of a subscription's endpoint and probe URL: none of them may be forbidden.

Resolving may take seconds: call this where no lock is held.
"""

from collections.abc import Mapping
from typing import Any

from django.conf import settings

from subscriptions.values.addresses import AddressRefusedError
from subscriptions.values.built_in_receivers import built_in_receivers
from subscriptions.values.endpoints import EndpointError, check_endpoint
from subscriptions.values.refusals import Refusal

URL_FIELDS = ("endpoint", "probe_url")


def address_refusals(values: Mapping[str, Any]) -> dict[str, Refusal]:
    """Return field → reason for URLs whose host has a forbidden address.

    The values may be those of an unchecked body: only the validators refuse a text other than a
    URL.
    """
    refused = {}
    for field in URL_FIELDS:
        url = values.get(field)
        if isinstance(url, str) and url and (reason := _refusal(url)):
            refused[field] = Refusal(reason)
    return refused


def _refusal(url: str) -> str:
    try:
        check_endpoint(
            url,
            allowed_networks=settings.ENVIRONMENT.allowed_networks,
            built_in_receivers=built_in_receivers(settings.ENVIRONMENT.base_url),
        )
    except EndpointError:
        return ""
    except AddressRefusedError as error:
        return str(error)
    return ""
