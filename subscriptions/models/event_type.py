"""An event type: the publishable messages, and how they are delivered."""

from django.core.validators import MinValueValidator
from django.db import models

from subscriptions.models.named_object import Named


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
    content_type = models.CharField(max_length=100, default="application/json")
    sample = models.JSONField(null=True, blank=True, help_text="A message as publishers send it.")
    json_schema = models.JSONField(
        null=True, blank=True, help_text="JSON Schema that every message must satisfy."
    )
    durability = models.CharField(max_length=10, choices=Durability, default=Durability.GUARANTEED)
    ttl_seconds = models.PositiveIntegerField(
        "time to live, seconds",
        null=True,
        blank=True,
        validators=[MinValueValidator(1)],
        help_text="Undelivered messages are EXPIRED after this time. Empty: never, "
        "except in a mailbox.",
    )
    errors_when = models.CharField(
        "errors when",
        max_length=8,
        choices=ErrorsWhen,
        default=ErrorsWhen.DELIVERY,
        help_text="Failures that are published as Inturn.Delivery.Failed.",
    )

    forward_headers = models.JSONField(
        default=list,
        blank=True,
        help_text="Headers that new subscriptions forward by default.",
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
