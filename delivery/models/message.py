"""A message: a published fact, with headers and the exact bytes of the body."""

import re

from django.db import models

from delivery.models.moment import ArchiveClock
from subscriptions.models import EventType, Publisher
from subscriptions.values.names import MAX_NAME_LENGTH

PUBLIC_ID = re.compile(r"(?:msg_)?([0-9]{1,18})\Z")


def public_id(message_id: int) -> str:
    """Return the id for publishers and receivers; it is also the `webhook-id`."""
    return f"msg_{message_id}"


def parse_public_id(text: str) -> int | None:
    """Return the id of a message from `msg_…`, or None if it is not an id."""
    match = PUBLIC_ID.match(text)
    return int(match.group(1)) if match else None


class Message(models.Model):
    """Immutable once published. The table is partitioned by ranges of ids.

    The migration of the partitions has the indexes. `headers` are the headers as sent, by
    lower-case hyphenated name, without hop-by-hop headers, cookies and credentials. The body is
    bytes, not jsonb, which would reorder keys and so break signatures.
    """

    event_type = models.ForeignKey(
        EventType, on_delete=models.PROTECT, related_name="+", db_index=False
    )
    publisher = models.ForeignKey(
        Publisher, on_delete=models.PROTECT, null=True, related_name="+", db_index=False
    )
    headers = models.JSONField(default=dict)
    content_type = models.CharField(max_length=255, blank=True, default="")
    body = models.BinaryField()
    destination = models.CharField(
        max_length=2 * MAX_NAME_LENGTH + 1,
        blank=True,
        default="",
        db_default="",
        help_text="Destination of a delivered message: a subscriber, or subscriber/subscription.",
    )
    edited_from = models.ForeignKey(
        "self",
        on_delete=models.PROTECT,
        null=True,
        related_name="+",
        db_index=False,
        db_constraint=False,
        help_text="The message of which this is an edited copy.",
    )
    published_at = models.DateTimeField(db_default=ArchiveClock())
    owed = models.IntegerField(null=True, help_text="With how many deliveries it was accepted.")
    transaction_id = models.BigIntegerField(
        null=True, help_text="PostgreSQL's xid8 of its publication."
    )
    seen_before = models.BigIntegerField(
        null=True, help_text="Every transaction before this one had ended when it was published."
    )

    class Meta:
        ordering = ["-id"]

    def __str__(self) -> str:
        return self.public_id

    @property
    def public_id(self) -> str:
        return public_id(self.pk)
