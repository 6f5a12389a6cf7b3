"""Preview of a filter: the newest messages of an event type which it would have matched.

`subscriptions.matching.match`, which publishing uses too, evaluates it on stored headers and
bodies, so the result is real, apart from reasons outside the filter: the subscription was INACTIVE,
an earlier subscription of a FIRST subscriber took the message, or it is a default destination and
another took it. Messages with a destination are left out, since no filter of another subscription
applied to them. The work has two limits, as bodies may be long: MESSAGES, and BYTES, which take
about 0.2 s to parse.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import orjson

from delivery.database.queries import named_rows
from delivery.models.message import public_id
from subscriptions.filters import Document, document
from subscriptions.matching.match import find_mismatch

MESSAGES = 1000
BYTES = 8 * 1024 * 1024
EXAMPLES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class PreviewedMessage:
    """A message with the filter's result.

    `reason` says why it does not match, without quoting the message; it is empty for a match.
    """

    message_id: int
    published_at: datetime
    reason: str

    @property
    def public_id(self) -> str:
        return public_id(self.message_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterPreview:
    """The result of a preview.

    `evaluated` counts the newest messages; `delivered` counts those with a destination, which are
    left out.
    """

    evaluated: int
    delivered: int
    matched: int
    bytes: int
    matching: list[PreviewedMessage]
    others: list[PreviewedMessage]

    @property
    def published(self) -> int:
        """The number of evaluated messages."""
        return self.evaluated - self.delivered

    @property
    def unmatched(self) -> int:
        return self.published - self.matched

    @property
    def is_cut(self) -> bool:
        """True if long bodies reduced the number of messages below MESSAGES."""
        return self.evaluated < MESSAGES and self.bytes >= BYTES


def preview_filter(
    event_type_id: int, *, header_filter_string: str, filter_text: str
) -> FilterPreview:
    """Evaluate the filter on the newest messages; it must be valid for `parse_filter`."""
    rows = named_rows(
        "newest_messages", {"event_type": event_type_id, "messages": MESSAGES, "bytes": BYTES}
    )
    published = [row for row in rows if not row["destination"]]
    evaluated = [_evaluated(row, header_filter_string, filter_text) for row in published]
    matching = [message for message in evaluated if not message.reason]
    return FilterPreview(
        evaluated=len(rows),
        delivered=len(rows) - len(published),
        matched=len(matching),
        bytes=sum(len(row["body"]) for row in rows),
        matching=matching[:EXAMPLES],
        others=[message for message in evaluated if message.reason][:EXAMPLES],
    )


def _evaluated(
    row: dict[str, Any], header_filter_string: str, filter_text: str
) -> PreviewedMessage:
    seen = document(_headers(row["headers"]), bytes(row["body"]))
    return PreviewedMessage(
        message_id=row["id"],
        published_at=row["published_at"],
        reason=_reason(header_filter_string, filter_text, seen),
    )


def _reason(header_filter_string: str, filter_text: str, seen: Document) -> str:
    """Return the reason without the header's value, which belongs to the payload."""
    if find_mismatch(header_filter_string, "", seen) is not None:
        return "it has another FILTER_STRING header, or none"
    return str(find_mismatch(header_filter_string, filter_text, seen) or "")


def _headers(stored: Any) -> dict[str, str]:
    """Return the headers as a dict.

    Django's connection returns jsonb as text, because Django's own fields parse it.
    """
    headers: dict[str, str] = orjson.loads(stored) if isinstance(stored, str) else stored
    return headers
