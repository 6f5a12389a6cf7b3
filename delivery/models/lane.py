"""A lane: an ordered stream of deliveries served by at most one sender at a time.

It is the holder of the lane's shard. `run_ids` are the deliveries read by it, in the order of
sending, with the number of attempts of each (`run_attempts`). They are committed before the first
is sent.

A sender commits each outcome before it sends the next, and an outcome raises the delivery's
attempts. So after a crash only one delivery may have been sent without a recorded outcome: the
first still PENDING delivery of the run, with as many attempts as recorded. A run whose deliveries
are all settled has no meaning. A sender with many at once (of a queue, or to a CONCURRENT
subscriber) records the running deliveries as the run: `run_is_concurrent`, and each still as
recorded may have been sent.
"""

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Case, F, Q, Value, When
from django.db.models.functions import Cast, Concat, Lower

from delivery.states import LaneState
from subscriptions.models import Kind, Subscriber, Subscription

# The event type of messages posted to callbacks; only Inturn publishes it.
CALLBACK_EVENT_TYPE = "Inturn.Callback"
# The upper half of the 64-bit keys of advisory locks; the lower is the number of a shard, a
# sender's slot, or a duty.
SHARD_LOCKS = 0x494E0001
MEMBER_LOCKS = 0x494E0002
DUTY_LOCKS = 0x494E0003


_SHOWN_STATE = """
    CASE
        WHEN delivery_lane.state <> 'IDLE' THEN delivery_lane.state
        WHEN EXISTS (
            SELECT
            FROM unnest(delivery_lane.run_ids, delivery_lane.run_attempts) AS run (id, attempts)
            CROSS JOIN LATERAL (
                SELECT status, attempts FROM delivery_waiting WHERE id = run.id LIMIT 1
            ) AS sent
            WHERE sent.status = 'PENDING' AND sent.attempts = run.attempts
        ) THEN 'SENDING'
        ELSE 'IDLE'
    END
"""


class LaneKind(models.TextChoices):
    TOPIC = "TOPIC", "one subscriber's"
    QUEUE = "QUEUE", "queue sender"
    RETRY = "RETRY", "retries"
    CALLBACK = "CALLBACK", "callbacks"


class LaneQuerySet(models.QuerySet["Lane"]):
    def with_name(self) -> "LaneQuerySet":
        """Annotate `name`: the subscriber's name, or a name such as `queue:3`."""
        name = Case(
            When(kind=LaneKind.TOPIC, then=F("subscriber__name")),
            default=Concat(
                Lower("kind"),
                Value(":"),
                Cast("number", models.CharField()),
                output_field=models.CharField(),
            ),
        )
        return self.annotate(name=name)

    def with_shown_state(self) -> "LaneQuerySet":
        """Annotate `shown_state`.

        An unstopped lane is SENDING while a delivery of the run is PENDING and as recorded,
        otherwise IDLE. A delivery tried since waits for the next try, perhaps in the retry lane, or
        because the URL is FROZEN.
        """
        return self.annotate(
            shown_state=models.Func(template=_SHOWN_STATE, output_field=models.CharField())
        )

    def of(self, subscription: Subscription) -> "LaneQuerySet":
        """Keep the possible lanes of the subscription's deliveries.

        The view delivery_subscriptionlane has the same rule.
        """
        if subscription.event_type.kind == Kind.QUEUE:
            return self.filter(kind=LaneKind.QUEUE)
        kind = (
            LaneKind.CALLBACK
            if subscription.event_type.name == CALLBACK_EVENT_TYPE
            else LaneKind.RETRY
        )
        return self.filter(Q(subscriber=subscription.subscriber_id) | Q(kind=kind))


class Lane(models.Model):
    """Written by the holder of the lane's shard, with three exceptions.

    A person's action (`delivery.support.unblock`) writes `state`, `since` and `next_try_at`, a hold
    and the end of a hold the catch-up columns, and a restore all of them. `state` is never SENDING:
    it follows from the run (`with_shown_state`), and is not written for each message. `failures`
    counts the unsuccessful tries in a row: the pause follows from it. For a CONCURRENT subscriber
    the row describes the longest DOWN endpoint; see `EndpointHealth` for all.
    """

    kind = models.CharField(max_length=8, choices=LaneKind)
    number = models.PositiveSmallIntegerField(default=0)
    subscriber = models.OneToOneField(
        Subscriber, on_delete=models.CASCADE, null=True, related_name="lane"
    )
    state = models.CharField(max_length=9, choices=LaneState, default=LaneState.IDLE)
    since = models.DateTimeField(db_default=models.functions.Now())
    reason = models.TextField(blank=True, default="")
    delivery_id = models.BigIntegerField(null=True, help_text="The delivery that stops it.")
    failures = models.PositiveIntegerField(default=0)
    next_try_at = models.DateTimeField(null=True)
    run_ids = ArrayField(models.BigIntegerField(), default=list)
    run_attempts = ArrayField(models.IntegerField(), default=list)
    run_is_concurrent = models.BooleanField(default=False, db_default=False)
    catch_up_rate = models.FloatField(
        null=True,
        help_text="Deliveries per second, at most, while it catches up on held deliveries.",
    )
    catch_up_to = models.BigIntegerField(
        null=True,
        help_text="The last delivery that may have been held; null: it does not catch up.",
    )

    objects = LaneQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["kind", "number"], condition=~Q(kind="TOPIC"), name="lane_number_of_a_kind"
            ),
            models.CheckConstraint(
                name="lane_topic_has_subscriber", condition=Q(kind="TOPIC") ^ Q(subscriber=None)
            ),
            models.CheckConstraint(
                name="lane_blocked_by_a_delivery",
                condition=~Q(state="BLOCKED") | Q(delivery_id__isnull=False),
            ),
            models.CheckConstraint(
                name="lane_run_knows_its_attempts",
                condition=Q(run_attempts__len=F("run_ids__len")),
            ),
            models.CheckConstraint(
                name="lane_catches_up_at_a_rate",
                condition=Q(catch_up_to__isnull=True) ^ Q(catch_up_rate__isnull=False),
            ),
        ]
        indexes = [
            models.Index(
                fields=["since"],
                name="lane_stopped",
                condition=Q(state__in=["BLOCKED", "SUSPENDED"]),
            ),
            # Senders query every second which lanes have to catch up at a rate.
            models.Index(
                fields=["id"], name="lane_catching_up", condition=Q(catch_up_to__isnull=False)
            ),
        ]

    def __str__(self) -> str:
        return self.subscriber.name if self.subscriber else f"{self.kind.lower()}:{self.number}"
