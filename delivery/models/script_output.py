"""The output of a subscription's script for a message, kept for all attempts to send the same."""

from django.db import models
from django.db.models.functions import Now

from delivery.models.delivery import Delivery


class ScriptOutput(models.Model):
    """Written by the delivery's sender before the first attempt (`senders/README.md`, *Scripts*).

    It is removed with the delivery's range. Without a `body` the message's own is sent;
    `content_type` is empty unless the script has changed it. `path` is appended to the endpoint's.
    """

    delivery = models.OneToOneField(
        Delivery,
        on_delete=models.DO_NOTHING,
        primary_key=True,
        db_constraint=False,
        related_name="script_output",
    )
    script_version = models.IntegerField()
    body = models.BinaryField(null=True)
    content_type = models.CharField(max_length=255, blank=True, default="")
    headers = models.JSONField(default=dict)
    path = models.TextField(blank=True, default="")
    made_at = models.DateTimeField(db_default=Now())

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"output of version {self.script_version} for delivery {self.delivery_id}"
