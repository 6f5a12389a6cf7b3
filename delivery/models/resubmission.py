"""A resubmission by filter: a person has many settled deliveries sent again."""

from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now


class ResubmissionState(models.TextChoices):
    RUNNING = "RUNNING"
    DONE = "DONE"
    CANCELLED = "CANCELLED"


class Resubmission(models.Model):
    """Goes through the deliveries that its filter selects by id, up to `last_id`, `rate` a second.

    `done` were gone through so far, up to `position`; of them `resubmitted` were sent again, the others could not be.
    """

    filter = models.JSONField(default=dict)
    rate = models.FloatField(null=True, help_text="Deliveries a second; empty: as fast as it goes.")
    actor = models.CharField(max_length=200)
    state = models.CharField(max_length=9, choices=ResubmissionState, default=ResubmissionState.RUNNING)
    count = models.BigIntegerField()
    done = models.BigIntegerField(default=0)
    resubmitted = models.BigIntegerField(default=0)
    position = models.BigIntegerField(default=0)
    last_id = models.BigIntegerField(default=0)
    created_at = models.DateTimeField(db_default=Now())
    next_at = models.DateTimeField(
        db_default=Now(), help_text="When the next batch is due, so that the rate is kept."
    )
    ended_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.CheckConstraint(
                name="resubmission_ended", condition=Q(state="RUNNING") ^ Q(ended_at__isnull=False)
            ),
            models.CheckConstraint(name="resubmission_counts", condition=Q(resubmitted__lte=F("done"))),
        ]

    def __str__(self) -> str:
        return f"resubmission {self.pk}"
