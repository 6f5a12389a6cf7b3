"""An idempotency key: the publisher's first answer, kept for 24 hours."""

from django.db import models

from delivery.models.message import Message
from subscriptions.models import Publisher


class IdempotencyKey(models.Model):
    publisher = models.ForeignKey(
        Publisher, on_delete=models.CASCADE, related_name="+", db_index=False
    )
    key = models.CharField(max_length=255)
    digest = models.BinaryField(
        help_text=(
            "SHA-256 of the event type's name, the destination and the body, with NULs between."
        )
    )
    message = models.ForeignKey(
        Message, on_delete=models.CASCADE, related_name="+", null=True, db_constraint=False
    )
    deliveries = models.PositiveIntegerField(default=0)
    created_at = models.DateTimeField(db_default=models.functions.Now())

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["publisher", "key"], name="idempotency_key_of_a_publisher"
            ),
        ]
        indexes = [models.Index(fields=["created_at"], name="idempotency_key_by_time")]

    def __str__(self) -> str:
        return self.key
