"""A signing secret, which signs the requests of a subscription."""

import base64
import secrets
from datetime import datetime

from django.db import models
from django.db.models import Q

from subscriptions.models.named_object import Watched
from subscriptions.models.subscription import Subscription
from subscriptions.values.encryption import EncryptedJSONField

SECRET_BYTES = 32


def new_secret() -> str:
    """Return a secret in the form of Standard Webhooks: `whsec_` and base64 of 32 random bytes."""
    return "whsec_" + base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode()


class SigningSecretQuerySet(models.QuerySet["SigningSecret"]):
    def valid(self, *, now: datetime) -> "SigningSecretQuerySet":
        return self.filter(Q(expires_at=None) | Q(expires_at__gt=now))


class SigningSecret(Watched):
    """A secret of a subscription; all unexpired secrets sign each request."""

    subscription = models.ForeignKey(Subscription, on_delete=models.CASCADE, related_name="secrets")
    secret = EncryptedJSONField(default=new_secret)
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField(null=True, blank=True)

    objects = SigningSecretQuerySet.as_manager()

    class Meta:
        ordering = ["-id"]
        indexes = [
            # The senders query by both twice a second.
            models.Index(fields=["changed_in"], name="secret_changed"),
            models.Index(
                fields=["expires_at"], name="secret_expiring", condition=Q(expires_at__isnull=False)
            ),
        ]

    def __str__(self) -> str:
        return f"secret {self.pk} of {self.subscription}"
