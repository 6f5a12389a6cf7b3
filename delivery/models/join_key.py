"""Joins of messages under way, a row for each activation id."""

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Now


class JoinKey(models.Model):
    """A join of a subscriber with an activation id.

    `key` is a SHA-256 of subscriber, join mode, join name and activation id. Publishers with the
    same key wait for each other at this row. ALL: `parts` are the present and past waiting
    deliveries. ONLY ONE: `delivery_id` is the first. The row means nothing after `expires_at`.
    """

    key = models.BinaryField(max_length=32, unique=True)
    delivery_id = models.BigIntegerField(null=True)
    parts = ArrayField(models.BigIntegerField(), default=list, db_default=[])
    expires_at = models.DateTimeField(db_default=Now())

    class Meta:
        default_permissions = ()
        indexes = [models.Index(fields=["expires_at"], name="join_key_by_time")]

    def __str__(self) -> str:
        return f"join {self.pk}"
