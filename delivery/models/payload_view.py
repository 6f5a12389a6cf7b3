"""The log of payload views: who saw which message's payload, and when.

Rows are only added and incremented.
"""

from django.db import models

SEE_PAYLOADS = "delivery.view_payload"


class PayloadView(models.Model):
    """A person's views of a message within an hour, counted in a row.

    A self-refreshing page therefore does not flood the log. It has name and id without foreign
    keys, since it outlives both the person and the message.
    """

    actor = models.CharField(max_length=200)
    message_id = models.BigIntegerField()
    hour = models.DateTimeField()
    first_at = models.DateTimeField()
    last_at = models.DateTimeField()
    views = models.PositiveIntegerField()

    class Meta:
        verbose_name = "payload view"
        ordering = ["-id"]
        permissions = [
            ("view_payload", "Can see payloads: bodies, header values and excerpts of answers")
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["actor", "message_id", "hour"], name="payload_view_of_an_hour"
            ),
        ]
        indexes = [
            models.Index(fields=["message_id"], name="payload_view_of_message"),
            models.Index(fields=["first_at"], name="payload_view_by_time"),
        ]

    def __str__(self) -> str:
        return f"{self.actor} saw msg_{self.message_id}"
