"""A publish id: the part of a TeamForge publish address which identifies the publisher.

Only the hash is stored.
"""

import uuid
from datetime import datetime

from django.db import models
from django.db.models import Q

from subscriptions.models.api_key import hash_of
from subscriptions.models.publisher import Publisher


def new_publish_id() -> str:
    """Return 122 random bits in the form of TeamForge's ids."""
    return str(uuid.uuid4())


class PublishIdQuerySet(models.QuerySet["PublishId"]):
    def valid(self, *, now: datetime) -> "PublishIdQuerySet":
        return self.filter(Q(expires_at=None) | Q(expires_at__gt=now))


class PublishId(models.Model):
    """A publish id of a publisher; without a valid id the publish addresses are switched off."""

    publisher = models.ForeignKey(Publisher, on_delete=models.CASCADE, related_name="publish_ids")
    hash = models.CharField(max_length=64, unique=True, editable=False)
    hint = models.CharField(
        max_length=12, editable=False, help_text="The end of the id, to recognise it by."
    )
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True, editable=False)

    objects = PublishIdQuerySet.as_manager()

    class Meta:
        verbose_name = "publish id"
        ordering = ["-id"]
        default_permissions = ()

    def __str__(self) -> str:
        return f"publish id …{self.hint} of {self.publisher}"

    def set_text(self, text: str) -> None:
        self.hash = hash_of(text)
        self.hint = text[-4:]
