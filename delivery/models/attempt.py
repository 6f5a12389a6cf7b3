"""An attempt: a try at a delivery, with the outcome."""

from django.db import models
from django.db.models import F

from delivery.models.delivery import Delivery
from delivery.states import OutcomeClass


class AttemptQuerySet(models.QuerySet["Attempt"]):
    def newest(self, count: int) -> "AttemptQuerySet":
        """Keep the newest of each delivery, up to a count.

        A blocking delivery is tried thousands of times.
        """
        return self.filter(number__gt=F("delivery__attempts") - count)


class Attempt(models.Model):
    """Every attempt: the logged ones, and those in their delivery's row. A read-only view.

    `excerpt` is the first 4 KiB of the answer to a failed attempt.
    """

    pk = models.CompositePrimaryKey("delivery", "number")
    delivery = models.ForeignKey(
        Delivery,
        on_delete=models.DO_NOTHING,
        related_name="history",
        db_index=False,
        db_constraint=False,
    )
    number = models.IntegerField()
    started_at = models.DateTimeField()
    duration_ms = models.IntegerField(null=True)
    outcome = models.CharField(max_length=16, choices=OutcomeClass)
    status_code = models.SmallIntegerField(null=True)
    error = models.TextField(blank=True, default="")
    excerpt = models.BinaryField(default=b"")

    objects = AttemptQuerySet.as_manager()

    class Meta:
        managed = False
        ordering = ["delivery", "number"]

    def __str__(self) -> str:
        return f"attempt {self.number} of delivery {self.delivery_id}"


class LoggedAttempt(models.Model):
    """An attempt with a separate row: failed, or not held in a delivery's row.

    Rows are only ever added. Their deliveries are the rows just changed by the inserting statement,
    so the database need not look them up again: those checks, and checks of the numbers, would slow
    each settlement by a tenth.
    """

    pk = models.CompositePrimaryKey("delivery", "number")
    delivery = models.ForeignKey(
        Delivery, on_delete=models.CASCADE, related_name="+", db_index=False, db_constraint=False
    )
    number = models.IntegerField()
    started_at = models.DateTimeField()
    duration_ms = models.IntegerField(null=True)
    outcome = models.CharField(max_length=16, choices=OutcomeClass)
    status_code = models.SmallIntegerField(null=True)
    error = models.TextField(blank=True, default="")
    excerpt = models.BinaryField(default=b"")

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"attempt {self.number} of delivery {self.delivery_id}"
