"""Recent rates of mailboxes: messages handed out and acknowledged."""

from django.db import models

from subscriptions.models import Subscriber


class MailboxRate(models.Model):
    """Counts of the ten seconds from `at`.

    Each has several rows, by `slot`: with a single row the writers would wait for each other.
    """

    pk = models.CompositePrimaryKey("subscriber", "at", "slot")
    subscriber = models.ForeignKey(
        Subscriber, on_delete=models.CASCADE, related_name="+", db_index=False
    )
    at = models.DateTimeField()
    slot = models.SmallIntegerField()
    received = models.IntegerField(default=0)
    acknowledged = models.IntegerField(default=0)

    class Meta:
        indexes = [models.Index(fields=["at"], name="mailbox_rate_by_time")]

    def __str__(self) -> str:
        return f"rate at {self.at}"
