"""Incidents: faults with their beginning and end, a row for each cause and thing.

`delivery/incidents/README.md` has the states, the rules and the crash windows.
"""

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q

from delivery.models.moment import Clock
from subscriptions.values.encryption import EncryptedJSONField


class IncidentKind(models.TextChoices):
    LANE = "LANE", "lane stopped"
    ENDPOINT = "ENDPOINT", "endpoint down"
    URL = "URL", "URL disabled or frozen"
    RETRYING = "RETRYING", "deliveries retried"
    FAILURES = "FAILURES", "failed deliveries"
    IN_DOUBT = "IN_DOUBT", "deliveries in doubt"
    OLDEST = "OLDEST", "slow lane"
    BACKLOG = "BACKLOG", "large backlog"
    VERIFY = "VERIFY", "history broken"
    PIPELINE = "PIPELINE", "pipeline failed"
    DISK = "DISK", "disk nearly full"
    DATABASE = "DATABASE", "database large"


class IncidentState(models.TextChoices):
    """WATCHED: the cause exists, but not long enough to announce it."""

    WATCHED = "WATCHED"
    OPEN = "OPEN"
    CLOSED = "CLOSED"


class IncidentSeverity(models.TextChoices):
    WARNING = "WARNING"
    CRITICAL = "CRITICAL"


class IncidentRule(models.Model):
    """The rule of a kind: when an incident opens and closes, and who gets mail or chat about it.

    An incident opens once the cause has existed for `after_seconds`, and closes once the cause has
    been absent for `quiet_seconds`. The meaning and unit of `bound` depend on the kind.
    """

    kind = models.CharField(max_length=8, choices=IncidentKind, primary_key=True)
    is_on = models.BooleanField("on", default=True)
    after_seconds = models.PositiveIntegerField(
        "opens after (seconds)",
        help_text="How long the cause must exist before it is announced.",
    )
    quiet_seconds = models.PositiveIntegerField(
        "closes after (seconds)",
        help_text="How long the cause must be absent. What returns earlier is the same incident.",
    )
    bound = models.FloatField(null=True, blank=True)
    mail_to = ArrayField(models.EmailField(), default=list, blank=True, verbose_name="mail to")
    chat_urls = EncryptedJSONField("chat webhooks", default=list, blank=True)

    class Meta:
        default_permissions = ("view", "change")
        verbose_name = "incident rule"
        ordering = ["kind"]

    def __str__(self) -> str:
        return self.get_kind_display()


class Incident(models.Model):
    """A present or past cause at one thing.

    `key` is kind and thing (for FAILURES also the cause): at most one incident of a key is not
    CLOSED. `absent_since` is the time since which the cause does not exist; for FAILURES of the
    last failure. The ids may refer to removed rows. `subject`, `cause` and `waiting` are those of
    the last announcement.
    """

    key = models.CharField(max_length=300)
    kind = models.CharField(max_length=8, choices=IncidentKind)
    state = models.CharField(
        max_length=7,
        choices=IncidentState,
        default=IncidentState.WATCHED,
        db_default=IncidentState.WATCHED,
    )
    severity = models.CharField(
        max_length=8,
        choices=IncidentSeverity,
        default=IncidentSeverity.WARNING,
        db_default=IncidentSeverity.WARNING,
    )
    lane_id = models.BigIntegerField(null=True)
    subscription_id = models.BigIntegerField(null=True)
    delivery_id = models.BigIntegerField(null=True, help_text="The head, or the last failure.")
    url = models.CharField(max_length=2000, blank=True, default="", db_default="")
    subject = models.CharField(max_length=500, blank=True, default="", db_default="")
    cause = models.TextField(blank=True, default="", db_default="")
    count = models.BigIntegerField(
        default=0, db_default=0, help_text="FAILURES, IN_DOUBT: of deliveries."
    )
    waiting = models.BigIntegerField(null=True)
    first_at = models.DateTimeField()
    absent_since = models.DateTimeField(null=True)
    opened_at = models.DateTimeField(null=True)
    closed_at = models.DateTimeField(null=True)
    closed_by = models.CharField(max_length=200, blank=True, default="", db_default="")
    # Whether a change is to be announced, and the time of the last announcement.
    is_changed = models.BooleanField(default=False, db_default=False)
    announced_at = models.DateTimeField(null=True)
    acknowledged_at = models.DateTimeField(null=True)
    acknowledged_by = models.CharField(max_length=200, blank=True, default="", db_default="")
    assignee = models.CharField(max_length=200, blank=True, default="", db_default="")
    muted_until = models.DateTimeField(null=True)

    class Meta:
        default_permissions = ("view", "change")
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["key"], condition=~Q(state="CLOSED"), name="incident_of_a_cause"
            ),
            models.CheckConstraint(
                name="incident_closed", condition=Q(state="CLOSED") ^ Q(closed_at__isnull=True)
            ),
            models.CheckConstraint(
                name="incident_opened", condition=Q(state="WATCHED") ^ Q(opened_at__isnull=False)
            ),
        ]
        indexes = [
            models.Index(fields=["state", "-id"], name="incident_by_state"),
            models.Index(fields=["key", "-id"], name="incident_by_key"),
            models.Index(fields=["closed_at"], name="incident_ended", condition=Q(state="CLOSED")),
        ]

    def __str__(self) -> str:
        return f"incident {self.pk}"


class PendingFailure(models.Model):
    """A settled failure, not yet included in incidents.

    Stored with the failure's message (`delivery.publishing.failures`), and deleted in the
    transaction which adds it to an incident: each failure counts once.
    """

    delivery_id = models.BigIntegerField()
    subscription_id = models.BigIntegerField()
    cause = models.CharField(max_length=20)
    at = models.DateTimeField(db_default=Clock())

    class Meta:
        # Of an earlier name: a renamed table would stop the version that runs meanwhile.
        db_table = "delivery_failuresign"
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.cause} of delivery {self.delivery_id}"


class IncidentDelivery(models.Model):
    """A delivery failed by the cause of an incident of kind FAILURES."""

    pk = models.CompositePrimaryKey("incident", "delivery_id")
    incident = models.ForeignKey(
        Incident, on_delete=models.CASCADE, related_name="failed", db_index=False
    )
    delivery_id = models.BigIntegerField()

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"delivery {self.delivery_id} of incident {self.incident_id}"


class AlertChannel(models.TextChoices):
    MAIL = "MAIL", "mail"
    CHAT = "CHAT", "chat"


class IncidentAlert(models.Model):
    """A text about an incident for a recipient: stored with the announced change.

    It is sent at least once, and is not tried any more after `expires_at`. A sender claims it by
    moving `next_at`, so another sender takes it if this sender dies.
    """

    incident = models.ForeignKey(Incident, on_delete=models.CASCADE, related_name="alerts")
    channel = models.CharField(max_length=4, choices=AlertChannel)
    recipient = models.CharField(
        max_length=2000, help_text="The mail address; for a chat the key of its URL."
    )
    url = EncryptedJSONField(null=True, blank=True, default=None, editable=False)
    subject = models.CharField(max_length=500)
    text = models.TextField()
    made_at = models.DateTimeField(db_default=Clock())
    next_at = models.DateTimeField(db_default=Clock())
    expires_at = models.DateTimeField()
    tries = models.PositiveIntegerField(default=0)
    sent_at = models.DateTimeField(null=True)
    error = models.TextField(blank=True, default="")

    class Meta:
        default_permissions = ()
        ordering = ["id"]
        indexes = [
            models.Index(
                fields=["channel", "next_at"],
                name="alert_unsent",
                condition=Q(sent_at__isnull=True),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.channel} to {self.recipient}"
