"""The rule of `subscriptions.checks.moved_endpoint` for the entries of a document."""

from collections.abc import Collection, Container, Iterator, Mapping
from dataclasses import replace
from typing import Any

from delivery.configuration.document.document import DocumentEntry, DocumentFault
from subscriptions.checks.moved_endpoint import kept_credentials, moved_refusals
from subscriptions.models import Subscription


def moved_faults(
    row: Subscription | None,
    values: Mapping[str, Any],
    *,
    entry: DocumentEntry,
    kept: Collection[str],
    of: str,
    with_new_headers: Container[str] = (),
) -> Iterator[DocumentFault]:
    """Yield a fault for each field whose stored credentials would newly go to a server.

    `kept` are the places of references without a value. An omitted field keeps its value, too.
    `with_new_headers`: the subscribers whose headers the document gives. `of` names the entry in
    faults; without a row it is created.
    """
    row = row or Subscription(subscriber=values["subscriber"])
    headers = values.get("headers", row.headers or {})
    found = kept_credentials(
        row,
        values,
        is_auth_kept="auth" not in entry or any(place.startswith("auth.") for place in kept),
        kept=[name for name in headers if "headers" not in entry or f"headers.{name}" in kept],
    )
    if str(row.subscriber) in with_new_headers:
        found = replace(found, shared={})
    refused = moved_refusals(row, values.get("endpoint", row.endpoint), found)
    for field, reason in refused.items():
        yield DocumentFault(object=of, field=field, detail=reason)
