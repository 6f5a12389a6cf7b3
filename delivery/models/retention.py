"""Retention: the removal of old enough, settled and archived messages."""

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now


class RetentionState(models.TextChoices):
    RUNNING = "RUNNING"
    DONE = "DONE"


class RetentionRun(models.Model):
    """Removes the due messages, by id, from `first_id` to `last_id`.

    Their deliveries and attempts are removed with them. `position` is the last message reached; 0:
    it is at the first rows to be removed (see `delivery.maintenance.retention`). The counts are of
    the rows removed so far.
    """

    state = models.CharField(max_length=7, choices=RetentionState, default=RetentionState.RUNNING)
    first_id = models.BigIntegerField(default=0)
    position = models.BigIntegerField(default=0)
    last_id = models.BigIntegerField(default=0)
    messages = models.BigIntegerField(default=0)
    deliveries = models.BigIntegerField(default=0)
    attempts = models.BigIntegerField(default=0)
    started_at = models.DateTimeField(db_default=Now())
    ended_at = models.DateTimeField(null=True)
    kept_because = models.TextField(
        default="",
        db_default="",
        help_text="Why archived messages stay: files of the archive that cannot be found.",
    )

    class Meta:
        verbose_name = "retention pass"
        verbose_name_plural = "retention passes"
        ordering = ["-id"]
        constraints = [
            models.CheckConstraint(
                name="retention_ended", condition=Q(state="RUNNING") ^ Q(ended_at__isnull=False)
            ),
            models.UniqueConstraint(
                fields=["state"], condition=Q(state="RUNNING"), name="retention_one_at_a_time"
            ),
        ]

    def __str__(self) -> str:
        return f"pass {self.pk}"

    @property
    def share(self) -> float:
        """The share of the pass done so far, from 0 to 1."""
        if self.state == RetentionState.DONE:
            return 1.0
        if self.position < self.first_id or not self.position:
            return 0.0
        return (self.position - self.first_id + 1) / (self.last_id - self.first_id + 1)


class Archived(models.Model):
    """A single row: deliveries settled before `until` are in the archive, which was verified."""

    until = models.DateTimeField()

    class Meta:
        constraints = [models.CheckConstraint(name="archived_is_one_row", condition=Q(pk=1))]

    def __str__(self) -> str:
        return f"archived until {self.until}"
