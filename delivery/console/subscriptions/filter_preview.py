"""What a filter would have matched: the newest messages of an event type, asked as publishing asks them.

It is asked by `subscriptions.matching.match`, of the stored headers and body, so what it says is what would have happened, but for what
lies outside the filter: that a subscription is INACTIVE, or that an earlier one of a FIRST subscriber took the message. What was
delivered to one destination is left out, for then no filter of another subscription had a say.

The work is bounded twice, for bodies may be long: by MESSAGES and by BYTES, which take some 0.2 s to parse.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import orjson

from delivery.database.queries import named_rows
from delivery.models.message import public_id
from subscriptions.filters import Document, document
from subscriptions.matching.match import why_not

MESSAGES = 1000
BYTES = 8 * 1024 * 1024
EXAMPLES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class PreviewedMessage:
    """A message that was asked. `reason` says why it does not match, and quotes nothing of it; empty, it does."""

    message_id: int
    published_at: datetime
    reason: str

    @property
    def public_id(self) -> str:
        return public_id(self.message_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterPreview:
    """`asked` are the newest messages; those of them that were `delivered` to one destination are left out."""

    asked: int
    delivered: int
    matched: int
    bytes: int
    matching: list[PreviewedMessage]
    others: list[PreviewedMessage]

    @property
    def published(self) -> int:
        """How many there were to be matched."""
        return self.asked - self.delivered

    @property
    def unmatched(self) -> int:
        return self.published - self.matched

    @property
    def is_cut(self) -> bool:
        """Whether bodies were so long that fewer than MESSAGES were asked."""
        return self.asked < MESSAGES and self.bytes >= BYTES


def preview_filter(event_type_id: int, *, header_filter_string: str, filter_text: str) -> FilterPreview:
    """Ask the newest messages; the filter must be one, as `parse` says."""
    rows = named_rows("newest_messages", {"event_type": event_type_id, "messages": MESSAGES, "bytes": BYTES})
    published = [row for row in rows if not row["destination"]]
    asked = [_ask(row, header_filter_string, filter_text) for row in published]
    matching = [one for one in asked if not one.reason]
    return FilterPreview(
        asked=len(rows),
        delivered=len(rows) - len(published),
        matched=len(matching),
        bytes=sum(len(row["body"]) for row in rows),
        matching=matching[:EXAMPLES],
        others=[one for one in asked if one.reason][:EXAMPLES],
    )


def _ask(row: dict[str, Any], header_filter_string: str, filter_text: str) -> PreviewedMessage:
    seen = document(_headers(row["headers"]), bytes(row["body"]))
    return PreviewedMessage(
        message_id=row["id"],
        published_at=row["published_at"],
        reason=_reason(header_filter_string, filter_text, seen),
    )


def _reason(header_filter_string: str, filter_text: str, seen: Document) -> str:
    """Say it without the value of the header, which is a part of the payload."""
    if why_not(header_filter_string, "", seen) is not None:
        return "it has another FILTER_STRING header, or none"
    return why_not(header_filter_string, filter_text, seen) or ""


def _headers(stored: Any) -> dict[str, str]:
    """Django's connection leaves jsonb as it came, for its fields read it themselves."""
    headers: dict[str, str] = orjson.loads(stored) if isinstance(stored, str) else stored
    return headers
