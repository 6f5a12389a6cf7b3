"""An event type: the publishable messages, and how they are delivered."""

from django.core.validators import MinValueValidator
from django.db import models

from subscriptions.models.named_object import Named
from subscriptions.values.json_schemas import validate_json_schema
from subscriptions.values.json_values import validate_storable
from subscriptions.values.media_types import JSON, validate_media_type


class Kind(models.TextChoices):
    TOPIC = "TOPIC", "TOPIC: to every matching subscription"
    QUEUE = "QUEUE", "QUEUE: to one endpoint of a group"
    SYNC = "SYNC", "SYNC: to one subscription, while the publisher waits"


class Durability(models.TextChoices):
    GUARANTEED = "GUARANTEED", "GUARANTEED: on disk before the answer"
    VOLATILE = "VOLATILE", "VOLATILE: tried once, lost on a crash"


class ErrorsWhen(models.TextChoices):
    DELIVERY = "DELIVERY", "DELIVERY: each failed delivery is published"
    GROUP = (
        "GROUP",
        "GROUP: of a QUEUE group only the last endpoint that failed, when none was delivered",
    )


class EventType(Named):
    kind = models.CharField(max_length=5, choices=Kind, default=Kind.TOPIC)
    content_type = models.CharField(max_length=100, default=JSON, validators=[validate_media_type])
    durability = models.CharField(max_length=10, choices=Durability, default=Durability.GUARANTEED)
    ttl_seconds = models.PositiveIntegerField(
        "time to live, seconds",
        null=True,
        blank=True,
        validators=[MinValueValidator(1)],
        help_text="Undelivered messages are EXPIRED after this time. Empty: never, "
        "except in a mailbox.",
    )
    forward_headers = models.JSONField(
        "forwarded headers",
        default=list,
        blank=True,
        help_text="Headers of a message that new subscriptions send along unless they name others: "
        "names, or beginnings with * at the end.",
    )
    errors_when = models.CharField(
        "errors when",
        max_length=8,
        choices=ErrorsWhen,
        default=ErrorsWhen.DELIVERY,
        help_text="Failures that are published as Inturn.Delivery.Failed.",
    )
    sample = models.JSONField(
        null=True,
        blank=True,
        validators=[validate_storable],
        help_text="A message as publishers send it. The filter tester uses it, and test messages "
        "start with it.",
    )
    json_schema = models.JSONField(
        "JSON Schema",
        null=True,
        blank=True,
        validators=[validate_storable, validate_json_schema],
        help_text="JSON Schema, Draft 2020-12, that every message must satisfy.",
    )

    class Meta(Named.Meta):
        constraints = [
            models.CheckConstraint(
                name="event_type_with_groups_is_a_queue",
                condition=models.Q(kind=Kind.QUEUE) | models.Q(errors_when="DELIVERY"),
                violation_error_message="Only a QUEUE has groups: give errors_when DELIVERY.",
            ),
            models.CheckConstraint(
                name="event_type_sync_is_answered_at_once",
                condition=~models.Q(kind=Kind.SYNC)
                | models.Q(durability="GUARANTEED", ttl_seconds=None),
                violation_error_message="A SYNC message is answered at once: it is "
                "GUARANTEED and has no ttl_seconds.",
            ),
        ]

    @property
    def is_volatile(self) -> bool:
        return self.durability == Durability.VOLATILE
