"""An API key and scope, owner and validity. Only the hash is stored."""

import hashlib
import secrets
from datetime import datetime

from django.db import models
from django.db.models import Q

from subscriptions.models.publisher import Publisher
from subscriptions.models.subscriber import Subscriber


class Scope(models.TextChoices):
    PUBLISH = "publish", "publish: as one publisher"
    FETCH = "fetch", "fetch: one subscriber's mailbox"
    READ = "read", "read: messages, deliveries and lanes"
    MANAGE = "manage", "manage: everything but publishing and fetching"


def new_key() -> str:
    """Return a new key: a prefix to identify it as Inturn's, and 256 random bits."""
    return f"inturn_{secrets.token_urlsafe(32)}"


def hash_of(key: str) -> str:
    # A plain hash is enough for 256 random bits, and allows looking the row up by it.
    return hashlib.sha256(key.encode()).hexdigest()


class ApiKeyQuerySet(models.QuerySet["ApiKey"]):
    def usable(self, *, now: datetime) -> "ApiKeyQuerySet":
        """Return the keys neither revoked nor expired."""
        return self.filter(Q(expires_at=None) | Q(expires_at__gt=now), revoked_at=None)


class ApiKey(models.Model):
    """A key with a scope; publish keys belong to a publisher, fetch keys to a subscriber.

    A read key with either is limited to it: see `subscriptions.reach`.
    """

    name = models.CharField(max_length=200, blank=True, default="")
    scope = models.CharField(max_length=7, choices=Scope)
    publisher = models.ForeignKey(
        Publisher, on_delete=models.CASCADE, null=True, blank=True, related_name="keys"
    )
    subscriber = models.ForeignKey(
        Subscriber, on_delete=models.CASCADE, null=True, blank=True, related_name="keys"
    )
    hash = models.CharField(max_length=64, unique=True, editable=False)
    hint = models.CharField(
        max_length=12, editable=False, help_text="The last characters of the key, to recognise it."
    )
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True, editable=False)

    objects = ApiKeyQuerySet.as_manager()

    class Meta:
        verbose_name = "key"
        ordering = ["-id"]
        constraints = [
            models.CheckConstraint(
                name="api_key_owner_fits_scope",
                condition=(
                    Q(scope="publish", publisher__isnull=False, subscriber=None)
                    | Q(scope="fetch", publisher=None, subscriber__isnull=False)
                    | Q(scope="read", publisher=None)
                    | Q(scope="read", subscriber=None)
                    | Q(scope="manage", publisher=None, subscriber=None)
                ),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.scope} key …{self.hint}"

    def set_key(self, key: str) -> None:
        self.hash = hash_of(key)
        self.hint = key[-4:]
