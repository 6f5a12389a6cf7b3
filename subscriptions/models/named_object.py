"""Base classes of configured objects: a unique name, and the times of creation and change."""

from django.db import models

from subscriptions.values.names import MAX_NAME_LENGTH, validate_name


class Watched(models.Model):
    """A row cached by senders: a trigger writes `changed_in` with every insert and update.

    It is the xid8 of the transaction. A timestamp would not do: the clocks of web servers differ,
    and a transaction may commit long after the time it wrote.
    """

    changed_in = models.BigIntegerField(null=True, editable=False)

    class Meta:
        abstract = True


class Named(models.Model):
    name = models.CharField(max_length=MAX_NAME_LENGTH, unique=True, validators=[validate_name])
    description = models.TextField(blank=True, default="")
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        abstract = True
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name
