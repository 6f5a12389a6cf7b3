"""Keys of a subscription's earlier messages, by which duplicates are found."""

from django.db import models
from django.db.models.functions import Now

from subscriptions.models import Subscription


class DedupKey(models.Model):
    """The last delivery with a key counted as new.

    `key` is a SHA-256 of the identifying values of the message. Delivery 0 stands for a delivery of
    the old broker (`delivery.management.importing`).
    """

    subscription = models.ForeignKey(
        Subscription, on_delete=models.CASCADE, related_name="+", db_index=False
    )
    key = models.BinaryField(max_length=32)
    delivery_id = models.BigIntegerField()
    seen_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["subscription", "key"], name="dedup_key_of_a_subscription"
            ),
        ]
        # Keys past their subscription's window are deleted.
        indexes = [models.Index(fields=["subscription", "seen_at"], name="dedup_key_by_time")]

    def __str__(self) -> str:
        return f"dedup key of delivery {self.delivery_id}"
