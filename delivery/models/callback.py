"""A callback: the address where the taking endpoint of a QUEUE message may answer later, once."""

from django.db import models
from django.db.models import Q

from delivery.models.message import Message

# Longer chains are refused: two brokers with answers to each other would never stop.
MAX_HOPS = 10


class Callback(models.Model):
    """The callback of a group of a QUEUE message published with `CallbackURL`.

    The answer goes to `url`. The URL for endpoints has a token derived from the row's id and this
    installation's secret key. So it is the same after any restart, and a copy of the database does
    not reveal it.
    """

    message = models.ForeignKey(
        Message, on_delete=models.PROTECT, related_name="callbacks", db_constraint=False
    )
    queue_group = models.SmallIntegerField(help_text="The group of the message, counted from 0.")
    url = models.CharField(max_length=2000, help_text="Where the publisher wants the answer.")
    hop = models.PositiveSmallIntegerField(
        default=1, help_text="How many callbacks led to this one, itself included."
    )
    expires_at = models.DateTimeField()
    answered_at = models.DateTimeField(null=True)
    answer = models.OneToOneField(
        Message, on_delete=models.PROTECT, null=True, related_name="answers", db_constraint=False
    )

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(fields=["message", "queue_group"], name="callback_of_a_group"),
            models.CheckConstraint(
                name="callback_answered",
                condition=Q(answered_at=None, answer=None)
                | Q(answered_at__isnull=False, answer__isnull=False),
            ),
            models.CheckConstraint(
                name="callback_chain_ends", condition=Q(hop__gte=1, hop__lte=MAX_HOPS)
            ),
        ]

    def __str__(self) -> str:
        return f"callback {self.pk}"
