"""A reply: the receiver of a delivery answered the message, published with `ReplyTo`."""

from django.db import models
from django.db.models.functions import Now

from delivery.models.message import Message


class Reply(models.Model):
    """The reply to a delivery; there is no row before.

    Of a QUEUE group a single endpoint may reply, so `queue_group` is the delivery's. `reply` is
    null only within the publishing transaction. `digest` is the SHA-256 of the body: the reply
    itself may be removed before the answered message, with which the row is removed.
    """

    delivery_id = models.BigIntegerField(primary_key=True)
    message = models.ForeignKey(
        Message,
        on_delete=models.DO_NOTHING,
        related_name="replies",
        db_index=False,
        db_constraint=False,
    )
    queue_group = models.SmallIntegerField(null=True)
    reply = models.OneToOneField(
        Message,
        on_delete=models.DO_NOTHING,
        null=True,
        related_name="replied",
        db_constraint=False,
    )
    deliveries = models.IntegerField(default=0, db_default=0)
    digest = models.BinaryField(max_length=32)
    replied_at = models.DateTimeField(db_default=Now())

    class Meta:
        default_permissions = ()
        verbose_name_plural = "replies"
        constraints = [
            models.UniqueConstraint(fields=["message", "queue_group"], name="reply_of_a_group"),
        ]

    def __str__(self) -> str:
        return f"reply to delivery {self.delivery_id}"
