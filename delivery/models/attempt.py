"""An attempt: one try at one delivery, with its outcome."""

from django.db import models

from delivery.models.delivery import Delivery
from delivery.states import OutcomeClass


class Attempt(models.Model):
    """Only ever added. `excerpt` is the first 4 KiB of the answer of a failed one."""

    delivery = models.ForeignKey(Delivery, on_delete=models.CASCADE, related_name="history", db_index=False)
    number = models.PositiveIntegerField()
    started_at = models.DateTimeField()
    duration_ms = models.PositiveIntegerField(null=True)
    outcome = models.CharField(max_length=16, choices=OutcomeClass)
    status_code = models.PositiveSmallIntegerField(null=True)
    error = models.TextField(blank=True, default="")
    excerpt = models.BinaryField(default=b"")

    class Meta:
        ordering = ["delivery", "number"]
        constraints = [
            models.UniqueConstraint(fields=["delivery", "number"], name="attempt_number_of_a_delivery"),
        ]

    def __str__(self) -> str:
        return f"attempt {self.number} of delivery {self.delivery_id}"
