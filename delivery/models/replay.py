"""A replay: the delivery of archived messages to a subscription, again or for the first time."""

from django.db import models
from django.db.models import F, Q

from delivery.models.moment import Clock
from subscriptions.models import Subscription


class ReplayState(models.TextChoices):
    """SELECTING: not counted yet. READY: a person may start it. RUNNING: it creates deliveries."""

    SELECTING = "SELECTING"
    READY = "READY"
    RUNNING = "RUNNING"
    DONE = "DONE"
    CANCELLED = "CANCELLED"
    FAILED = "FAILED"


class Replay(models.Model):
    """The messages published from `since` to before `until` with matching event types and filter.

    Event types are names. `preview` counts the selection: a list of {event, day, count}. `position`
    is the last message whose delivery was created.
    """

    subscription = models.ForeignKey(
        # The deliveries protect the subscription; a replay alone does not.
        Subscription,
        on_delete=models.CASCADE,
        related_name="replays",
        db_index=False,
    )
    event_types = models.JSONField(default=list)
    filter = models.TextField(blank=True, default="")
    header_filter_string = models.CharField(max_length=1000, blank=True, default="")
    since = models.DateTimeField()
    until = models.DateTimeField()
    rate = models.FloatField(
        null=True, help_text="Deliveries per second; empty: as fast as possible."
    )
    state = models.CharField(max_length=9, choices=ReplayState, default=ReplayState.SELECTING)
    preview = models.JSONField(default=list)
    count = models.BigIntegerField(default=0)
    done = models.BigIntegerField(default=0)
    made = models.BigIntegerField(
        default=0, help_text="Deliveries created; the messages of the others no longer exist."
    )
    position = models.BigIntegerField(default=0)
    error = models.TextField(blank=True, default="")
    asked_by = models.CharField(max_length=200)
    asked_at = models.DateTimeField(db_default=Clock())
    due_at = models.DateTimeField(
        db_default=Clock(), help_text="When the next batch is due, so that the rate is kept."
    )
    ended_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.CheckConstraint(
                name="replay_ended",
                condition=Q(state__in=["SELECTING", "READY", "RUNNING"])
                ^ Q(ended_at__isnull=False),
            ),
            models.CheckConstraint(
                name="replay_is_a_piece_of_time", condition=Q(since__lt=F("until"))
            ),
            models.CheckConstraint(
                name="replay_counts", condition=Q(made__lte=F("done"), done__lte=F("count"))
            ),
        ]

    def __str__(self) -> str:
        return f"replay {self.pk}"


class ReplayItem(models.Model):
    """A message of a replay, once, with the delivery when created.

    The message may be in the archive alone.
    """

    pk = models.CompositePrimaryKey("replay", "message_id")
    replay = models.ForeignKey(
        Replay, on_delete=models.CASCADE, related_name="items", db_index=False
    )
    message_id = models.BigIntegerField()
    delivery_id = models.BigIntegerField(null=True)

    class Meta:
        indexes = [
            # Messages protected from retention.
            models.Index(
                fields=["message_id"], name="replay_item_to_do", condition=Q(delivery_id=None)
            ),
        ]

    def __str__(self) -> str:
        return f"message {self.message_id} of replay {self.replay_id}"
