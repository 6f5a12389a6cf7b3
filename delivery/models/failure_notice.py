"""A settled failure that is still to be told as `Inturn.Delivery.Failed`."""

from django.db import models
from django.db.models.functions import Now


class FailureNotice(models.Model):
    """Written in the transaction that settles the delivery, deleted in the one that publishes the message.

    So each settled failure is told once, whoever dies in between. A SYNC delivery has one from the start, which is
    `due_at` a time by which its answer is recorded, or never will be.
    """

    delivery_id = models.BigIntegerField()
    number = models.IntegerField(help_text="The attempt that was the last; 0: none was recorded.")
    due_at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(fields=["delivery_id", "number"], name="failure_notice_of_an_attempt"),
        ]

    def __str__(self) -> str:
        return f"failure of delivery {self.delivery_id}"
