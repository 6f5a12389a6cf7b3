"""URLs without their secrets, in frames: the rule of `subscriptions.values.shown_addresses`."""

from typing import TYPE_CHECKING

from subscriptions.values.shown_addresses import LONG_PART, MASK, QUERY

if TYPE_CHECKING:
    from pyspark.sql import Column


def masked_url(url: "Column") -> "Column":
    """Return an endpoint or URL with query and long parts of the path masked."""
    from pyspark.sql import functions as sql

    path = sql.regexp_replace(url, LONG_PART.pattern, f"/{MASK}")
    return sql.regexp_replace(path, QUERY.pattern, f"?{MASK}")
