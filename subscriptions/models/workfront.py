"""An event subscription created by Workfront's API, with the id and the client's document."""

import uuid

from django.db import models

from subscriptions.models.subscription import Subscription


class WorkfrontSubscription(models.Model):
    """Deleted with the subscription, or alone if a client deletes a subscription with a history.

    `document` is the client's, without the token, which the subscription has. `digest` covers the
    fields by which two of them are duplicates.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4)
    subscription = models.OneToOneField(
        Subscription, on_delete=models.CASCADE, related_name="workfront"
    )
    document = models.JSONField()
    digest = models.BinaryField(max_length=32, unique=True)

    class Meta:
        verbose_name = "Workfront subscription"
        default_permissions = ()
        ordering = ["subscription"]

    def __str__(self) -> str:
        return str(self.id)
