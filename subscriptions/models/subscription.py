"""A subscription: a subscriber's standing request for messages."""

from collections.abc import Iterable
from typing import Any

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models

from subscriptions.filters import filter_identity
from subscriptions.models.event_type import EventType
from subscriptions.models.holding import Holdable, SubscriptionStatus
from subscriptions.models.named_object import Watched
from subscriptions.models.policy import Policy
from subscriptions.models.subscriber import Subscriber
from subscriptions.values.encryption import EncryptedJSONField
from subscriptions.values.endpoints import MAX_ENDPOINT_LENGTH, validate_endpoint, validate_url
from subscriptions.values.filter_strings import validate_filter_string
from subscriptions.values.filter_texts import validate_filter, validate_path
from subscriptions.values.header_values import validate_auth, validate_headers
from subscriptions.values.names import MAX_NAME_LENGTH, validate_name

MAX_TIMEOUT_SECONDS = 120


class Mode(models.TextChoices):
    PUSH = "PUSH", "PUSH: sent to an endpoint"
    PULL = "PULL", "PULL: kept in a mailbox until fetched"


class DedupMode(models.TextChoices):
    NONE = "NONE", "none"
    KEY = "KEY", "key: by the message's Idempotency-Key"
    PATH = "PATH", "path: by the value at a path of the filter language"


class JoinMode(models.TextChoices):
    NONE = "NONE", "none"
    ALL = "ALL", "ALL: one message of each is sent together"
    ONLY_ONE = "ONLY_ONE", "ONLY ONE: the first is sent, the others are not"


class Subscription(Watched, Holdable):
    """The messages that a subscriber requests, and the endpoint or mailbox for them.

    `headers` is a JSON object of the headers to send along; `auth` is one of `{"type": "none"}`,
    `{"type": "basic", "username", "password"}` and `{"type": "bearer", "token"}`. Both are
    encrypted at rest.

    `filter` is the text as typed, `filter_identity` the normal form. Subscriptions share a QUEUE
    group, or conflict in a SYNC event type, if they have the same identity and the same
    `header_filter_string`. `save` writes both.

    `script_version` is the number of changes of `script`, 0 if there never was a script: a trigger
    counts.
    """

    subscriber = models.ForeignKey(
        Subscriber, on_delete=models.PROTECT, related_name="subscriptions"
    )
    name = models.CharField(max_length=MAX_NAME_LENGTH, validators=[validate_name])
    description = models.TextField(blank=True, default="", db_default="")
    event_type = models.ForeignKey(
        EventType, on_delete=models.PROTECT, related_name="subscriptions"
    )
    header_filter_string = models.CharField(
        max_length=1000,
        blank=True,
        default="",
        validators=[validate_filter_string],
        help_text="Only messages whose FILTER_STRING header equals this.",
    )
    filter = models.TextField(
        blank=True,
        default="",
        validators=[validate_filter],
        help_text="e.g. $$->'Body'->'project'->>'id' = 'proj1008'",
    )
    filter_identity = models.TextField(blank=True, default="", editable=False)
    script = models.TextField(
        blank=True,
        default="",
        db_default="",
        help_text="JavaScript (ES5). TOPIC: turns each message into the request: it reads "
        "$inmessage, $intext and $inheader, and sets $outmessage, $param, $outheader. SYNC with "
        "the endpoint webr://: makes the answer, $outmessage and $statuscode.",
    )
    script_version = models.IntegerField(default=0, db_default=0, editable=False)
    takes_unmatched = models.BooleanField(
        "default destination",
        default=False,
        help_text="TOPIC: gets only messages that match no other subscription of the event type.",
    )
    position = models.PositiveIntegerField(
        default=0,
        help_text="Priority, lowest first, where only one subscription gets a message: "
        "match mode FIRST, or a SYNC event type.",
    )
    mode = models.CharField(max_length=4, choices=Mode, default=Mode.PUSH)
    endpoint = models.CharField(
        max_length=MAX_ENDPOINT_LENGTH,
        blank=True,
        default="",
        validators=[validate_endpoint],
        help_text="https://…, or with a method: PATCH:https://…; a PULL subscription has none. "
        "SYNC: webr:// when its script answers.",
    )
    policy = models.ForeignKey(Policy, on_delete=models.PROTECT, related_name="subscriptions")
    headers = EncryptedJSONField(default=dict, blank=True, validators=[validate_headers])
    auth = EncryptedJSONField(default=dict, blank=True, validators=[validate_auth])
    forward_headers = models.JSONField(
        "headers of the message",
        default=list,
        blank=True,
        help_text="Which headers of a message are sent along: names, or beginnings with * at the "
        "end. Left out of a new subscription: those of its event type.",
    )
    forward_authorization = models.BooleanField(
        "forward the publisher's credential",
        default=False,
        help_text="SYNC: the publisher's X-Forward-Authorization is passed on as Authorization, "
        "and never stored.",
    )
    timeout_seconds = models.PositiveSmallIntegerField(
        default=30, validators=[MinValueValidator(1), MaxValueValidator(MAX_TIMEOUT_SECONDS)]
    )
    probe_url = models.CharField(
        "probe URL",
        max_length=MAX_ENDPOINT_LENGTH,
        blank=True,
        default="",
        validators=[validate_url],
        help_text="Called by GET while the lane is suspended; "
        "the lane resumes when the answer is 2xx.",
    )
    lets_pass_on_timeout = models.BooleanField(
        "without a response: return 200",
        default=False,
        help_text="SYNC: when the endpoint gives no answer, in time or at all, the publisher gets "
        "200 and an empty body instead of 504 or 502.",
    )
    dedup_mode = models.CharField(
        max_length=4,
        choices=DedupMode,
        default=DedupMode.NONE,
        help_text="A repeat is a DUPLICATE and is not sent. A repeat that arrives before the first "
        "is settled is IN_DOUBT: a person decides.",
    )
    dedup_path = models.CharField(
        max_length=1000,
        blank=True,
        default="",
        validators=[validate_path],
        help_text="With dedup_mode PATH: path to the value that identifies a message, e.g. "
        "$$->'Body'->>'id'.",
    )
    dedup_window_seconds = models.PositiveIntegerField(
        default=3 * 86_400,
        validators=[MinValueValidator(1), MaxValueValidator(31 * 86_400)],
        help_text="Time in which a repeated message counts as a duplicate; 259200 are three days.",
    )
    join_mode = models.CharField(
        max_length=8,
        choices=JoinMode,
        default=JoinMode.NONE,
        db_default=JoinMode.NONE,
        help_text="Messages with the same activation id, of several subscriptions of a subscriber "
        "with the same join name.",
    )
    join_name = models.CharField(
        max_length=MAX_NAME_LENGTH,
        blank=True,
        default="",
        db_default="",
        help_text="The subscriptions of a subscriber with the same "
        "join_mode and join_name are one join.",
    )
    join_path = models.CharField(
        max_length=1000,
        blank=True,
        default="",
        db_default="",
        validators=[validate_path],
        help_text="Of a join: path to the activation id, e.g. $$->'Body'->>'order'. Empty: the "
        "header Activation.",
    )
    join_seconds = models.PositiveIntegerField(
        default=86_400,
        db_default=86_400,
        validators=[MinValueValidator(1), MaxValueValidator(31 * 86_400)],
        help_text="ALL: how long a message waits for the others. ONLY_ONE: "
        "how long the others are not sent.",
    )
    max_receives = models.PositiveSmallIntegerField(
        null=True,
        blank=True,
        validators=[MinValueValidator(1), MaxValueValidator(1000)],
        help_text="PULL: a message that was fetched so often and never acknowledged is FAILED. "
        "Empty: it returns until it expires.",
    )
    status = models.CharField(
        max_length=8,
        choices=SubscriptionStatus,
        default=SubscriptionStatus.ACTIVE,
        help_text="HELD: its messages are stored and wait. SHADOW: its matches are recorded, and "
        "never sent. INACTIVE: nothing matches.",
    )
    cancellation_id = models.BigIntegerField(
        null=True,
        editable=False,
        help_text="The running cancellation of its backlog: nothing is sent until it has ended. "
        "null: none is running.",
    )
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["subscriber", "position", "id"]
        permissions = [
            (
                "toggle_subscription",
                "Can make subscriptions and subscribers ACTIVE, HELD and INACTIVE",
            )
        ]
        constraints = [
            # Code which writes the filter without `save` fails here, instead of creating a separate
            # group.
            models.CheckConstraint(
                name="subscription_filter_has_identity",
                condition=models.Q(filter="", filter_identity="")
                | (~models.Q(filter="") & ~models.Q(filter_identity="")),
            ),
            models.UniqueConstraint(
                fields=["subscriber", "name"], name="subscription_name_of_a_subscriber"
            ),
            models.CheckConstraint(
                name="subscription_push_has_endpoint",
                condition=models.Q(mode="PUSH") ^ models.Q(endpoint=""),
                violation_error_message="A PUSH subscription needs an endpoint; "
                "a PULL one has none.",
            ),
            models.CheckConstraint(
                name="subscription_dedup_has_path",
                condition=models.Q(dedup_mode="PATH") ^ models.Q(dedup_path=""),
                violation_error_message="dedup_mode PATH needs a dedup_path; the others have none.",
            ),
            models.CheckConstraint(
                name="subscription_join_has_name",
                condition=models.Q(join_mode="NONE") ^ ~models.Q(join_name=""),
                violation_error_message="A join needs a join_name; without one it stays empty.",
            ),
            models.CheckConstraint(
                name="subscription_join_of_all_is_pushed",
                condition=~models.Q(join_mode="ALL") | models.Q(mode="PUSH"),
                violation_error_message="A join of ALL needs a PUSH subscription.",
            ),
            models.CheckConstraint(
                name="subscription_ends_holding",
                condition=models.Q(status="HELD") | models.Q(held_until=None, catch_up_rate=None),
            ),
            models.CheckConstraint(
                name="subscription_pull_counts_receives",
                condition=models.Q(mode="PULL") | models.Q(max_receives=None),
                violation_error_message="max_receives is for PULL subscriptions.",
            ),
            models.CheckConstraint(
                name="subscription_pull_has_no_script",
                condition=models.Q(mode="PUSH") | models.Q(script=""),
                violation_error_message="A PULL subscription has no script: nothing is sent to it.",
            ),
        ]
        indexes = [
            models.Index(
                fields=["event_type", "header_filter_string"],
                name="subscription_matching",
                condition=~models.Q(status="INACTIVE"),
            ),
            models.Index(fields=["changed_in"], name="subscription_changed"),
            # Queried for each read delivery: a message's headers are loaded only for these.
            models.Index(
                fields=["event_type", "id"],
                name="subscription_forwarding",
                condition=~models.Q(forward_headers=[]),
            ),
            # Senders look for them when a common script changed.
            models.Index(
                fields=["id"], name="subscription_scripted", condition=~models.Q(script="")
            ),
            # Queried when a message of a join of ALL arrives.
            models.Index(
                fields=["subscriber", "join_name"],
                name="subscription_joining",
                condition=models.Q(join_mode="ALL"),
            ),
            # For the overview: those whose waiting deliveries are held.
            models.Index(
                fields=["id"], name="subscription_not_active", condition=~models.Q(status="ACTIVE")
            ),
            models.Index(
                fields=["id"], name="subscription_held", condition=models.Q(status="HELD")
            ),
            models.Index(
                fields=["id"], name="subscription_shadow", condition=models.Q(status="SHADOW")
            ),
            models.Index(
                fields=["held_until"],
                name="subscription_held_until",
                condition=models.Q(held_until__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.subscriber.name}/{self.name}"

    @property
    def has_place_without_lane(self) -> bool:
        """Whether a delivery in no lane may be sent again: not of a SYNC message.

        It was in a mailbox, or waited for the other messages of a join.
        """
        return self.mode == Mode.PULL or self.join_mode == JoinMode.ALL

    @property
    def held_by(self) -> "Subscription | Subscriber | None":
        """Return the row whose status stops the deliveries; the installation may hold them too."""
        owners: tuple[Subscription | Subscriber, ...] = (self, self.subscriber)
        return next((owner for owner in owners if owner.status != SubscriptionStatus.ACTIVE), None)

    def save(self, *, update_fields: Iterable[str] | None = None, **options: Any) -> None:
        if update_fields is not None:
            update_fields = set(update_fields)
        if update_fields is None or "filter" in update_fields:
            self.filter_identity = filter_identity(self.filter)
            update_fields = update_fields and {*update_fields, "filter_identity"}
        super().save(update_fields=update_fields, **options)
