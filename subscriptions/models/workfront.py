"""An event subscription that came by Workfront's API: what its client knows it by, and what it said."""

import uuid

from django.db import models

from subscriptions.models.subscription import Subscription


class WorkfrontSubscription(models.Model):
    """Gone with its subscription, and without it when a client deletes what has a history.

    `document` is what the client gave, without its token, which is the subscription's. `digest` is of all that makes two of them the same.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4)
    subscription = models.OneToOneField(Subscription, on_delete=models.CASCADE, related_name="workfront")
    document = models.JSONField()
    digest = models.BinaryField(max_length=32, unique=True)

    class Meta:
        verbose_name = "Workfront subscription"
        default_permissions = ()
        ordering = ["subscription"]

    def __str__(self) -> str:
        return str(self.id)
