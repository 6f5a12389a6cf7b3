"""The rule of `subscriptions.checks.moved_endpoint` for the entries of a document."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any

from subscriptions.checks.moved_endpoint import kept_credentials, moved_refusals
from subscriptions.configuration.document import DocumentEntry, DocumentFault
from subscriptions.models import Subscription


def moved_faults(
    row: Subscription,
    values: Mapping[str, Any],
    *,
    entry: DocumentEntry,
    kept: Collection[str],
    has_new_shared: bool,
) -> Iterator[DocumentFault]:
    """Yield a fault for each field whose stored credentials would go to another server.

    `kept` are the places of references without a value. A field that the entry omits keeps its
    value, too. `has_new_shared`: the document gives the headers of the subscriber.
    """
    headers = values.get("headers", row.headers or {})
    found = kept_credentials(
        row,
        is_auth_kept="auth" not in entry or any(place.startswith("auth.") for place in kept),
        headers=headers,
        kept=[name for name in headers if "headers" not in entry or f"headers.{name}" in kept],
    )
    found = replace(found, shared=()) if has_new_shared else found
    refused = moved_refusals(row, values.get("endpoint", row.endpoint), found)
    for field, reason in refused.items():
        yield DocumentFault(object=f"subscription {row}", field=field, detail=reason)
