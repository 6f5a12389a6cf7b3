"""A subscriber: a receiving application, and the unit of order."""

from django.core.validators import MaxValueValidator, MinValueValidator, RegexValidator
from django.db import models

from subscriptions.models.holding import Holdable, SubscriberStatus
from subscriptions.models.named_object import Named, Watched
from subscriptions.values.encryption import EncryptedJSONField
from subscriptions.values.header_values import validate_headers
from subscriptions.values.names import MAX_NAME_LENGTH, validate_name


class Processing(models.TextChoices):
    SERIAL = "SERIAL", "SERIAL: one at a time, in order"
    CONCURRENT = "CONCURRENT", "CONCURRENT: several at a time, no order"


class MatchMode(models.TextChoices):
    ALL = "ALL", "ALL: every matching subscription gets the message"
    FIRST = "FIRST", "FIRST: only the first by position"


# It appears unescaped in addresses, between two slashes.
validate_queue_id = RegexValidator(
    r"\A[A-Za-z0-9_][A-Za-z0-9._~@:-]*\Z",
    "Use letters, digits and . _ ~ @ : -, as in the queue's old address.",
)


class Subscriber(Named, Watched, Holdable):
    processing = models.CharField(max_length=10, choices=Processing, default=Processing.SERIAL)
    max_in_flight = models.PositiveSmallIntegerField(
        default=1,
        validators=[MinValueValidator(1), MaxValueValidator(1000)],
        help_text="CONCURRENT: maximum number of simultaneous deliveries.",
    )
    max_queued_to_send = models.PositiveIntegerField(
        default=500,
        validators=[MinValueValidator(1), MaxValueValidator(10_000)],
        help_text="Number of deliveries that a sender reads at a time.",
    )
    refill_level = models.PositiveIntegerField(
        default=100,
        help_text="The sender reads again when this many remain.",
    )
    by_priority = models.BooleanField(
        default=False,
        db_default=False,
        help_text="CONCURRENT: messages with a higher Priority header, 9 to 0, "
        "are sent first. SERIAL ignores it.",
    )
    match_mode = models.CharField(max_length=5, choices=MatchMode, default=MatchMode.ALL)
    application = models.CharField(
        max_length=MAX_NAME_LENGTH,
        blank=True,
        default="",
        db_default="",
        validators=[validate_name],
        help_text="A name that several subscribers share, such as their server's. "
        "A message with it as Destination goes to all of them.",
    )
    queue_id = models.CharField(
        "queue id",
        max_length=200,
        blank=True,
        default="",
        validators=[validate_queue_id],
        help_text="The queue's id in the old Event Queue: its clients find the mailbox at "
        "/event/queue/<queue id>/next.",
    )
    # Hashed like a person's password: it was chosen elsewhere, and may be short.
    queue_password = models.CharField(
        max_length=200,
        blank=True,
        default="",
        editable=False,
        help_text="For clients of the old Event Queue without a fetch key: they sign in with it "
        "and the subscriber's name. Only the hash is stored.",
    )
    # Sent with each delivery of the subscriptions. Null without any, so nobody has to decrypt an
    # empty object for each loaded subscriber.
    headers = EncryptedJSONField(
        null=True, blank=True, default=None, editable=False, validators=[validate_headers]
    )
    status = models.CharField(
        max_length=8, choices=SubscriberStatus, default=SubscriberStatus.ACTIVE, editable=False
    )

    class Meta(Named.Meta):
        constraints = [
            models.CheckConstraint(
                name="subscriber_refills_before_it_is_full",
                condition=models.Q(refill_level__lt=models.F("max_queued_to_send")),
                violation_error_message="refill_level must be less than max_queued_to_send.",
            ),
            models.UniqueConstraint(
                name="subscriber_has_its_queue_id_alone",
                fields=["queue_id"],
                condition=~models.Q(queue_id=""),
                violation_error_message="Another subscriber has this queue id.",
            ),
            models.CheckConstraint(
                name="subscriber_ends_holding",
                condition=models.Q(status="HELD") | models.Q(held_until=None, catch_up_rate=None),
            ),
        ]
        indexes = [
            # The senders query the changed subscribers every half second.
            models.Index(fields=["changed_in"], name="subscriber_changed"),
            # Empty while nobody is held: reading deliveries looks here for each subscription.
            models.Index(
                fields=["id"], name="subscriber_held", condition=~models.Q(status="ACTIVE")
            ),
            models.Index(
                fields=["held_until"],
                name="subscriber_held_until",
                condition=models.Q(held_until__isnull=False),
            ),
        ]
