"""The journal: the operational log for people."""

from django.db import models

from delivery.models.moment import ArchiveClock


class JournalKind(models.TextChoices):
    UNMATCHED = "UNMATCHED", "a message without a subscription"
    BLOCKED = "BLOCKED", "a lane is blocked"
    RESUMED = "RESUMED", "a lane resumed"
    IN_DOUBT = "IN_DOUBT", "a delivery may have been sent"
    RETRIED = "RETRIED", "a person requested a retry"
    SKIPPED = "SKIPPED", "a person skipped a message"
    CANCELLED = "CANCELLED", "a person cancelled deliveries"
    RESUBMITTED = "RESUBMITTED", "a person sent deliveries again"
    ACTIVATED = "ACTIVATED", "made ACTIVE: a subscription, a subscriber, or all sending"
    DEACTIVATED = "DEACTIVATED", "made INACTIVE: a subscription or a subscriber"
    HELD = "HELD", "HELD: a subscription, a subscriber, or all sending"
    SHADOW = "SHADOW", "made SHADOW: a subscription"
    FAILED = "FAILED", "a delivery's attempts are used up"
    SUSPENDED = "SUSPENDED", "a lane is suspended"
    DISABLED = "DISABLED", "a URL is disabled"
    FROZEN = "FROZEN", "a URL is frozen"
    ENABLED = "ENABLED", "a URL is enabled again"
    RESOLVED = "RESOLVED", "a person decided a delivery in doubt"
    DUPLICATE = "DUPLICATE", "a duplicate message"
    AMBIGUOUS = "AMBIGUOUS", "several subscriptions matched a SYNC message"
    CALLBACK = "CALLBACK", "an endpoint answered by callback"
    EXPIRED = "EXPIRED", "expired deliveries"
    REPLAYED = "REPLAYED", "a person replayed messages"
    TESTED = "TESTED", "a person sent a test message"
    PUBLISHED = "PUBLISHED", "a person published a message in the console"
    ERRORS_TO = "ERRORS_TO", "the named recipient of a failure does not exist"
    IMPORTED = "IMPORTED", "messages of an old broker were imported"
    REMOVED = "REMOVED", "retention removed messages"
    INCIDENT = "INCIDENT", "an incident was opened, changed or closed"


class JournalEntry(models.Model):
    """An entry refers to the subject by ids without foreign keys: entries outlive their subject.

    ACTIVATED, DEACTIVATED and HELD name a subscription; or the lane of a subscriber; or neither, if
    they concern all sending.
    """

    at = models.DateTimeField(db_default=ArchiveClock())
    kind = models.CharField(max_length=11, choices=JournalKind)
    text = models.TextField()
    actor = models.CharField(
        max_length=200, blank=True, default="", help_text="Empty: Inturn itself."
    )
    message_id = models.BigIntegerField(null=True)
    delivery_id = models.BigIntegerField(null=True)
    subscription_id = models.BigIntegerField(null=True)
    lane_id = models.BigIntegerField(null=True)

    class Meta:
        verbose_name_plural = "journal"
        ordering = ["-id"]
        indexes = [
            models.Index(fields=["kind", "-id"], name="journal_by_kind"),
            models.Index(
                fields=["message_id"],
                name="journal_of_message",
                condition=models.Q(message_id__isnull=False),
            ),
            models.Index(
                fields=["delivery_id"],
                name="journal_of_delivery",
                condition=models.Q(delivery_id__isnull=False),
            ),
            models.Index(
                fields=["subscription_id", "-id"],
                name="journal_of_subscription",
                condition=models.Q(subscription_id__isnull=False),
            ),
            models.Index(
                fields=["lane_id", "-id"],
                name="journal_of_lane",
                condition=models.Q(lane_id__isnull=False),
            ),
            models.Index(fields=["at"], name="journal_by_time"),
        ]

    def __str__(self) -> str:
        return self.text
