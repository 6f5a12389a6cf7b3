"""A delivery: one message on its way to one subscription; the row always tells where it is."""

from django.db import models
from django.db.models import Q

from delivery.models.callback import Callback
from delivery.models.lane import Lane
from delivery.models.message import Message
from delivery.models.possible import IsPossible
from delivery.models.replay import Replay
from delivery.states import OPEN, Status
from subscriptions.models import Subscription

# Settled, and somebody may ask why; a REDUNDANT one is no failure.
NOT_DELIVERED = [
    status.value for status in Status if status not in (*OPEN, Status.DELIVERED, Status.REDUNDANT)
]


class Redelivery(models.TextChoices):
    """Why a delivery is sent again; stands in the header `inturn-redelivery`."""

    NONE = "", "–"
    IN_DOUBT = "in-doubt", "a sender died after sending it"
    RESUBMITTED = "resubmitted", "a person sent it again"


class DeliveryQuerySet(models.QuerySet["Delivery"]):
    def pending(self) -> "DeliveryQuerySet":
        return self.filter(status=Status.PENDING)


class Delivery(models.Model):
    """Its status is changed by `delivery.lifecycle` and the statements in `delivery/sql` only.

    `attempts` counts the attempts that were recorded; of those, `attempts_before` do not count against the
    policy's `max_attempts`: they were made before a person had it sent again. `settled_before` counts the settlements that
    a person ended, by having it sent again or deciding what was in doubt: their rows are in EarlierSettlement. `skipped` marks one that failed
    and was overtaken: a run holds at most half of such. `reason` is the last
    attempt's outcome in words. `queue_group` is fixed when a QUEUE message is published, whatever
    becomes of the filters later: of the deliveries of a group at most one is DELIVERED. One with a `callback`
    goes to that callback's URL.

    One of a PULL subscription is in no lane but in its subscriber's mailbox. Who fetched it last, at `leased_at`, holds it
    until `lease_expires_at`, by `lease_token`; it is there again then, without anybody changing the row. `next_attempt_at` is until when
    it was released with a delay. What was fetched for the n-th time (`receive_count`) is attempt n.

    What is not settled by `expires_at` is EXPIRED. One of a VOLATILE message has the start of the database server it was
    published under, `server_started_at`: under another it is not sent any more, but EXPIRED.
    """

    # No constraints that look up a row for each delivery: they took half of what storing one cost. Instead:
    # - Message: a delivery is inserted by the statement that inserts its message, or with the message locked
    #   (`keep_messages`), as retention locks it.
    # - Subscription: the statement that inserts holds it (`FOR KEY SHARE`), or another row that refers to it; a
    #   trigger refuses to delete one with deliveries.
    # - Lane: it lives as long as its subscriber, which a subscription protects.
    # - Callback: it goes only with its message and the answer, whose deliveries those of the callback are.
    # - Replay: nothing deletes one.
    message = models.ForeignKey(
        Message, on_delete=models.PROTECT, related_name="deliveries", db_constraint=False
    )
    subscription = models.ForeignKey(
        Subscription,
        on_delete=models.PROTECT,
        related_name="deliveries",
        db_index=False,
        db_constraint=False,
    )
    lane = models.ForeignKey(
        Lane,
        on_delete=models.PROTECT,
        null=True,
        related_name="deliveries",
        db_index=False,
        db_constraint=False,
    )
    queue_group = models.SmallIntegerField(
        null=True, help_text="Of a QUEUE message: the group it belongs to, counted from 0."
    )
    callback = models.ForeignKey(
        Callback,
        on_delete=models.PROTECT,
        null=True,
        related_name="deliveries",
        db_index=False,
        db_constraint=False,
    )
    replay = models.ForeignKey(
        Replay,
        on_delete=models.PROTECT,
        null=True,
        related_name="deliveries",
        db_index=False,
        db_constraint=False,
        help_text="What made it, instead of its message's publication.",
    )
    status = models.CharField(max_length=15, choices=Status, default=Status.PENDING)
    attempts = models.IntegerField(default=0)
    attempts_before = models.IntegerField(default=0, db_default=0)
    settled_before = models.IntegerField(default=0, db_default=0)
    skipped = models.BooleanField(default=False)
    redelivery = models.CharField(max_length=12, choices=Redelivery, blank=True, default=Redelivery.NONE)
    reason = models.TextField(blank=True, default="")
    next_attempt_at = models.DateTimeField(null=True)
    expires_at = models.DateTimeField(null=True)
    server_started_at = models.DateTimeField(null=True)
    settled_at = models.DateTimeField(null=True)
    leased_at = models.DateTimeField(null=True)
    lease_token = models.UUIDField(null=True)
    lease_expires_at = models.DateTimeField(null=True)
    receive_count = models.IntegerField(default=0)

    objects = DeliveryQuerySet.as_manager()

    class Meta:
        verbose_name_plural = "deliveries"
        ordering = ["-id"]
        constraints = [
            models.CheckConstraint(name="delivery_is_possible", condition=IsPossible()),
            models.UniqueConstraint(
                fields=["message", "queue_group"],
                name="delivery_one_of_a_queue_group",
                condition=Q(status="DELIVERED", queue_group__isnull=False),
            ),
            models.UniqueConstraint(
                fields=["replay", "message"],
                name="delivery_once_of_a_replay",
                condition=Q(replay__isnull=False),
            ),
        ]
        indexes = [
            # What a sender reads: the oldest of each subscription of its lane.
            models.Index(
                fields=["lane", "skipped", "subscription", "id"],
                name="delivery_pending",
                condition=Q(status="PENDING"),
            ),
            # What is due in the retry lane and the callback lane, of each subscription.
            models.Index(
                fields=["lane", "subscription", "next_attempt_at"],
                name="delivery_due",
                condition=Q(status="PENDING", next_attempt_at__isnull=False),
            ),
            # What may be fetched from a mailbox, the oldest first; what was released with a delay; what is out.
            models.Index(
                fields=["subscription", "id"],
                name="delivery_in_mailbox",
                condition=Q(status="PENDING", lane=None, next_attempt_at=None),
            ),
            models.Index(
                fields=["subscription", "next_attempt_at"],
                name="delivery_delayed",
                condition=Q(status="PENDING", lane=None, next_attempt_at__isnull=False),
            ),
            models.Index(
                fields=["subscription", "lease_expires_at", "id"],
                name="delivery_leased",
                condition=Q(status="IN_FLIGHT"),
            ),
            # What is to become EXPIRED.
            models.Index(
                fields=["expires_at"],
                name="delivery_expiring",
                condition=Q(status__in=["PENDING", "IN_FLIGHT"], expires_at__isnull=False),
            ),
            models.Index(
                fields=["server_started_at"],
                name="delivery_volatile",
                condition=Q(status__in=["PENDING", "IN_FLIGHT"], server_started_at__isnull=False),
            ),
            # What support looks for and the overview counts: few, among millions DELIVERED.
            models.Index(
                fields=["status", "-id"],
                name="delivery_not_delivered",
                condition=Q(status__in=NOT_DELIVERED),
            ),
            # What a subscription or a subscriber has, for the lists: read from the index alone, and sorted. Not in the order
            # of the ids, which would tempt the planner to serve a mailbox from it, past all that is settled.
            models.Index(fields=["subscription"], include=["id", "status"], name="delivery_of_subscription"),
            # Messages by what became of their deliveries, in the order of the messages.
            models.Index(
                fields=["status", "-message"],
                name="delivery_failed_of_message",
                condition=Q(status__in=NOT_DELIVERED),
            ),
            models.Index(
                fields=["settled_at"], name="delivery_settled", condition=Q(settled_at__isnull=False)
            ),
            models.Index(
                fields=["replay", "-id"], name="delivery_of_replay", condition=Q(replay__isnull=False)
            ),
        ]

    def __str__(self) -> str:
        return f"delivery {self.pk}"
