"""The configuration log: each change with author, before and after; and transactions."""

from django.db import models


class ConfigurationTransaction(models.Model):
    """A transaction with a change of configuration cached for publishing; a trigger writes the row.

    See `delivery.incoming.short_way.cache`.
    """

    id = models.BigIntegerField(primary_key=True)
    changed_at = models.DateTimeField()

    class Meta:
        # No view shows them.
        default_permissions = ()

    def __str__(self) -> str:
        return str(self.id)


class ConfigurationChange(models.Model):
    at = models.DateTimeField(auto_now_add=True)
    actor = models.CharField(max_length=200, help_text="Name of the user, or the key used.")
    action = models.CharField(max_length=30, help_text="created, changed, deleted, rotated …")
    object_type = models.CharField(max_length=50)
    object_name = models.CharField(max_length=450)
    before = models.JSONField(null=True)
    after = models.JSONField(null=True)

    class Meta:
        ordering = ["-id"]
        indexes = [
            models.Index(fields=["object_type", "object_name"], name="change_of_object"),
            models.Index(fields=["actor", "-id"], name="change_by_actor"),
            models.Index(fields=["at"], name="change_by_time"),
        ]

    def __str__(self) -> str:
        return f"{self.actor} {self.action} {self.object_type} {self.object_name}"
