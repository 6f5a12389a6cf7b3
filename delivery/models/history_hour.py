"""An hour of the history of a subscription, as the rollup computed it from the archive."""

from django.db import models

READ = [
    "subscription_id",
    "subscriber",
    "event_type",
    "delivered",
    "rejected",
    "unsupported",
    "failed",
    "expired",
    "attempts",
    "retried",
    "bytes",
    "blocked_seconds",
    "latency_p50",
    "latency_p95",
    "latency_p99",
    "response_p50",
    "response_p95",
    "response_p99",
]


class HistoryHour(models.Model):
    """Counts of the deliveries settled in the hour from `hour`.

    Only the step ROLLUP writes it. Names are as they were then. `retried` of the deliveries had
    more than one attempt. `latency_…` is the time from publication to delivery of DELIVERED
    deliveries, `response_…` the duration of an attempt, both in milliseconds: percentiles and the
    maximum; null when there was none. `bytes` are of the delivered bodies. For `blocked_seconds` of
    the hour a delivery of this subscription blocked or suspended a lane.
    """

    hour = models.DateTimeField()
    subscriber = models.CharField(max_length=200)
    subscription_id = models.BigIntegerField()
    subscription = models.CharField(max_length=200)
    event_type = models.CharField(max_length=200)
    endpoint = models.CharField(max_length=2000, blank=True, default="")
    delivered = models.BigIntegerField(default=0)
    rejected = models.BigIntegerField(default=0)
    unsupported = models.BigIntegerField(default=0)
    redundant = models.BigIntegerField(default=0)
    failed = models.BigIntegerField(default=0)
    in_doubt = models.BigIntegerField(default=0)
    expired = models.BigIntegerField(default=0)
    cancelled = models.BigIntegerField(default=0)
    duplicate = models.BigIntegerField(default=0)
    shadow = models.BigIntegerField(default=0)
    attempts = models.BigIntegerField(default=0)
    failed_attempts = models.BigIntegerField(default=0)
    retried = models.BigIntegerField(default=0)
    bytes = models.BigIntegerField(default=0)
    blocked_seconds = models.FloatField(default=0)
    latency_p50 = models.FloatField(null=True)
    latency_p95 = models.FloatField(null=True)
    latency_p99 = models.FloatField(null=True)
    latency_max = models.FloatField(null=True)
    response_p50 = models.FloatField(null=True)
    response_p95 = models.FloatField(null=True)
    response_p99 = models.FloatField(null=True)
    response_max = models.FloatField(null=True)

    class Meta:
        verbose_name_plural = "history"
        ordering = ["hour", "subscription_id"]
        constraints = [
            models.UniqueConstraint(
                fields=["hour", "subscription_id", "subscriber", "event_type"],
                name="history_hour_once",
            ),
        ]
        indexes = [
            models.Index(fields=["subscription_id", "hour"], name="history_hour_of"),
            # The columns read by charts over all subscriptions, without the rows, which are three
            # times as long.
            models.Index(fields=["hour"], include=READ, name="history_hour_read"),
        ]

    def __str__(self) -> str:
        return f"{self.subscription} at {self.hour}"
