"""A line of a backlog as a storable message."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

from django.conf import settings

from delivery.incoming.batch_items import Item
from delivery.incoming.drafting import draft_of_item
from delivery.incoming.problems import Problem
from delivery.management.importing.lines import ImportLineError, Line, read_lines
from delivery.management.importing.old_messages import (
    NamedObjects,
    body_in,
    headers_in,
    key_of_line,
    moment_of,
    names_of_line,
    text_of_line,
)
from delivery.publishing.drafts import Draft, PublishRefusedError, checked_draft
from subscriptions.matching.candidates import Candidate
from subscriptions.models import EventType, Kind, Publisher
from subscriptions.values.names import is_reserved

FIELDS = frozenset(
    {
        "key",
        "event",
        "headers",
        "body",
        "body_base64",
        "content_type",
        "published_at",
        "publisher",
        "subscriptions",
    }
)
ORIGINAL_ID, ORIGINAL_PUBLISHED_AT = "original-id", "original-published-at"


@dataclass(frozen=True, slots=True)
class OldMessage:
    """A valid line. `named` are the listed subscriptions; None: all that qualify."""

    number: int
    key: bytes
    digest: bytes
    publisher: Publisher
    draft: Draft
    named: list[Candidate] | None
    published_at: datetime | None


@dataclass(slots=True)
class BacklogLines:
    """The lines of a file; `source` is the old broker's name, within which keys are unique."""

    path: Path
    source: str
    publisher: str = ""
    _objects: NamedObjects = field(default_factory=NamedObjects)

    def messages(self) -> Iterator[OldMessage | ImportLineError]:
        """Yield the message of each line, or the error. Raise OSError."""
        max_bytes = 2 * settings.ENVIRONMENT.max_message_bytes + 100_000
        for line in read_lines(self.path, known=FIELDS, max_bytes=max_bytes):
            try:
                yield line if isinstance(line, ImportLineError) else self._message(line)
            except ImportLineError as error:
                yield error

    def _message(self, line: Line) -> OldMessage:
        key, names, published_at = (
            key_of_line(line),
            names_of_line(line),
            moment_of(line, "published_at"),
        )
        publisher = self._objects.publisher(line, text_of_line(line, "publisher", self.publisher))
        draft = self._draft(line, publisher=publisher, key=key, published_at=published_at)
        named = None
        if names is not None:
            event_type = draft.event_type
            named = [
                self._objects.subscription(line, name, event_type=event_type) for name in names
            ]
        return OldMessage(
            number=line.number,
            key=hashlib.sha256(f"{self.source}\0{key}".encode()).digest(),
            digest=_digest(draft, names),
            publisher=publisher,
            draft=draft,
            named=named,
            published_at=published_at,
        )

    def _draft(
        self, line: Line, *, publisher: Publisher, key: str, published_at: datetime | None
    ) -> Draft:
        headers = headers_in(line)
        if content_type := text_of_line(line, "content_type"):
            headers["content-type"] = content_type
        headers.setdefault("idempotency-key", key)
        headers[ORIGINAL_ID] = key
        if published_at is not None:
            headers[ORIGINAL_PUBLISHED_AT] = published_at.isoformat()
        body, is_json = body_in(line)
        item = Item(
            event=text_of_line(line, "event"),
            headers=headers,
            body=body,
            is_json=is_json,
            idempotency_key=None,
        )
        try:
            draft = draft_of_item(item, lambda name: self._event_type(line, name))
            # Without the key: it belongs to the old broker's publisher, not to Inturn's.
            return checked_draft(replace(draft, idempotency_key=None), publisher=publisher)
        except Problem as problem:
            raise ImportLineError(line.number, str(problem.detail)) from None
        except PublishRefusedError as refused:
            raise ImportLineError(line.number, refused.detail) from None

    def _event_type(self, line: Line, name: str) -> EventType:
        event_type = self._objects.event_type(line, name)
        if event_type.kind == Kind.SYNC:
            raise ImportLineError(
                line.number,
                f"event: {name} is SYNC: nobody waits for the answer any more; leave it out.",
            )
        if is_reserved(name):
            raise ImportLineError(
                line.number, f"event: {name} is published only by Inturn itself; leave it out."
            )
        return event_type


def _digest(draft: Draft, names: list[str] | None) -> bytes:
    words = [draft.event_type.name, *sorted(names or ())]
    return hashlib.sha256("\0".join([*words, ""]).encode() + draft.body).digest()
