"""A settled failure, not yet reported as `Inturn.Delivery.Failed`."""

from django.db import models
from django.db.models.functions import Now


class FailureNotice(models.Model):
    """Written in the settling transaction of the delivery, deleted when the message is published.

    The deletion is in the publishing transaction, so each settled failure is reported once, even if
    a process dies in between. A SYNC delivery has a notice from the start; `due_at` is a time by
    which the answer is recorded, or never will be.
    """

    delivery_id = models.BigIntegerField()
    number = models.IntegerField(help_text="The attempt that was the last; 0: none was recorded.")
    due_at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(
                fields=["delivery_id", "number"], name="failure_notice_of_an_attempt"
            ),
        ]

    def __str__(self) -> str:
        return f"failure of delivery {self.delivery_id}"
