"""The rule of `subscriptions.checks.moved_endpoint` for the body of a POST or PATCH."""

from collections.abc import Mapping
from typing import Any

from subscriptions.changes import MASKED
from subscriptions.checks.moved_endpoint import SECRET_PARTS, kept_credentials, moved_refusals
from subscriptions.models import Subscription


def refusals_of_body(
    row: Subscription | None, values: Mapping[str, Any], *, body: Mapping[str, Any]
) -> dict[str, str]:
    """Return field → reason if a server newly gets credentials missing in the body.

    A masked value and an omitted field keep the stored values. Without a row it is created.
    """
    row = row or Subscription(subscriber=values["subscriber"])
    auth, headers = body.get("auth"), values.get("headers", row.headers or {})
    given = body.get("headers")
    kept = kept_credentials(
        row,
        values,
        is_auth_kept=auth is None or any(auth.get(part) == MASKED for part in SECRET_PARTS),
        kept=[name for name in headers if given is None or given.get(name) == MASKED],
    )
    return moved_refusals(row, values.get("endpoint", row.endpoint), kept)
