"""What a mailbox handed out and had acknowledged lately."""

from django.db import models

from subscriptions.models import Subscriber


class MailboxRate(models.Model):
    """Counts of ten seconds, which are at `at`. Several rows each, by `slot`: one would make its writers wait for each other."""

    pk = models.CompositePrimaryKey("subscriber", "at", "slot")
    subscriber = models.ForeignKey(Subscriber, on_delete=models.CASCADE, related_name="+", db_index=False)
    at = models.DateTimeField()
    slot = models.SmallIntegerField()
    received = models.IntegerField(default=0)
    acknowledged = models.IntegerField(default=0)

    class Meta:
        indexes = [models.Index(fields=["at"], name="mailbox_rate_by_time")]

    def __str__(self) -> str:
        return f"rate at {self.at}"
