"""A bulk job: a person resubmits or cancels many deliveries by a filter."""

from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now


class BulkVerb(models.TextChoices):
    RESUBMIT = "RESUBMIT", "resubmit"
    CANCEL = "CANCEL", "cancel"


class ResubmissionState(models.TextChoices):
    RUNNING = "RUNNING"
    DONE = "DONE"
    CANCELLED = "CANCELLED"


class Resubmission(models.Model):
    """Processes the deliveries matching the filter by id, up to `last_id`, `rate` a second.

    `done` were processed so far, up to `position`; `changed` of them were resubmitted, or
    cancelled: the others could not be. `count` is the number selected when the job was created.
    With `is_backlog` it cancels the deliveries held for the subscription in the filter when it was
    made ACTIVE; until then the subscription's `cancellation_id` keeps deliveries from being sent to
    it.
    """

    verb = models.CharField(
        max_length=8, choices=BulkVerb, default=BulkVerb.RESUBMIT, db_default=BulkVerb.RESUBMIT
    )
    filter = models.JSONField(default=dict)
    is_backlog = models.BooleanField(default=False, db_default=False)
    rate = models.FloatField(
        null=True, help_text="Deliveries per second; empty: as fast as possible."
    )
    actor = models.CharField(max_length=200)
    state = models.CharField(
        max_length=9, choices=ResubmissionState, default=ResubmissionState.RUNNING
    )
    count = models.BigIntegerField()
    done = models.BigIntegerField(default=0)
    changed = models.BigIntegerField(default=0)
    position = models.BigIntegerField(default=0)
    last_id = models.BigIntegerField(default=0)
    created_at = models.DateTimeField(db_default=Now())
    next_at = models.DateTimeField(
        db_default=Now(), help_text="When the next batch is due, so that the rate is kept."
    )
    ended_at = models.DateTimeField(null=True)

    class Meta:
        verbose_name = "resubmission"
        verbose_name_plural = "resubmissions and cancellations"
        ordering = ["-id"]
        constraints = [
            models.CheckConstraint(
                name="resubmission_ended", condition=Q(state="RUNNING") ^ Q(ended_at__isnull=False)
            ),
            models.CheckConstraint(name="resubmission_counts", condition=Q(changed__lte=F("done"))),
        ]

    def __str__(self) -> str:
        return f"{self.noun} {self.pk}"

    @property
    def noun(self) -> str:
        return "cancellation" if self.verb == BulkVerb.CANCEL else "resubmission"
