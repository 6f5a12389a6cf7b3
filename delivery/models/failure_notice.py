"""A settled failure that is still to be told as `Inturn.Delivery.Failed`."""

from django.db import models


class FailureNotice(models.Model):
    """Written in the transaction that settles the delivery, deleted in the one that publishes the message.

    So each settled failure is told once, whoever dies in between.
    """

    delivery_id = models.BigIntegerField()
    number = models.IntegerField(help_text="The attempt that was the last.")

    class Meta:
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(fields=["delivery_id", "number"], name="failure_notice_of_an_attempt"),
        ]

    def __str__(self) -> str:
        return f"failure of delivery {self.delivery_id}"
