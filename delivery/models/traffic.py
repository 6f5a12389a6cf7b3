"""Traffic: counts of accepted, delivered and failed, computed in advance for charts and health.

Only `delivery.maintenance.traffic` writes it.
"""

from django.db import models

from subscriptions.models import Subscription


class TrafficMinute(models.Model):
    """The counts of the whole installation for the minute from `at`."""

    at = models.DateTimeField(primary_key=True)
    accepted = models.IntegerField(default=0)
    delivered = models.IntegerField(default=0)
    failed = models.IntegerField(default=0)

    class Meta:
        ordering = ["at"]

    def __str__(self) -> str:
        return f"traffic at {self.at}"


class SubscriptionTraffic(models.Model):
    """The settled deliveries of a subscription in the quarter of an hour from `at`.

    There is a row for each `step` of the last attempt's duration (see
    `delivery.maintenance.durations`) with attempts; -1: the duration is unknown, or there was no
    attempt.
    """

    pk = models.CompositePrimaryKey("subscription", "at", "step")
    subscription = models.ForeignKey(
        Subscription, on_delete=models.CASCADE, related_name="+", db_index=False
    )
    at = models.DateTimeField()
    step = models.SmallIntegerField()
    delivered = models.IntegerField(default=0)
    failed = models.IntegerField(default=0)

    class Meta:
        indexes = [models.Index(fields=["at"], name="subscription_traffic_by_time")]

    def __str__(self) -> str:
        return f"traffic at {self.at}"


class TrafficMark(models.Model):
    """A single row: everything before `until` is counted. The numbers are totals of all time."""

    until = models.DateTimeField()
    accepted = models.BigIntegerField(default=0)
    delivered = models.BigIntegerField(default=0)
    failed = models.BigIntegerField(default=0)

    class Meta:
        constraints = [
            models.CheckConstraint(name="traffic_mark_is_one_row", condition=models.Q(pk=1))
        ]

    def __str__(self) -> str:
        return f"traffic counted until {self.until}"
