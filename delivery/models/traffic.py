"""Traffic: what was accepted, delivered and failed, counted beforehand for charts and health.

Written by `delivery.maintenance.traffic` alone.
"""

from django.db import models

from subscriptions.models import Subscription


class TrafficMinute(models.Model):
    """What happened in the whole installation in the minute that begins at `at`."""

    at = models.DateTimeField(primary_key=True)
    accepted = models.IntegerField(default=0)
    delivered = models.IntegerField(default=0)
    failed = models.IntegerField(default=0)

    class Meta:
        ordering = ["at"]

    def __str__(self) -> str:
        return f"traffic at {self.at}"


class SubscriptionTraffic(models.Model):
    """What was settled of a subscription in the quarter of an hour that begins at `at`.

    One row for each `step` of how long the last attempt took (see `delivery.maintenance.durations`) that occurred; -1: not known, or
    there was none.
    """

    pk = models.CompositePrimaryKey("subscription", "at", "step")
    subscription = models.ForeignKey(Subscription, on_delete=models.CASCADE, related_name="+", db_index=False)
    at = models.DateTimeField()
    step = models.SmallIntegerField()
    delivered = models.IntegerField(default=0)
    failed = models.IntegerField(default=0)

    class Meta:
        indexes = [models.Index(fields=["at"], name="subscription_traffic_by_time")]

    def __str__(self) -> str:
        return f"traffic at {self.at}"


class TrafficMark(models.Model):
    """One row: everything before `until` is counted. The numbers are all that ever was."""

    until = models.DateTimeField()
    accepted = models.BigIntegerField(default=0)
    delivered = models.BigIntegerField(default=0)
    failed = models.BigIntegerField(default=0)

    class Meta:
        constraints = [models.CheckConstraint(name="traffic_mark_is_one_row", condition=models.Q(pk=1))]

    def __str__(self) -> str:
        return f"traffic counted until {self.until}"
