"""A publisher: an application allowed to publish."""

from django.contrib.auth.models import User
from django.db import models

from subscriptions.models.event_type import EventType
from subscriptions.models.named_object import Named
from subscriptions.values.names import MAX_NAME_LENGTH


class Publisher(Named):
    all_event_types = models.BooleanField(
        default=True, help_text="May publish every event type, including future ones."
    )
    event_types = models.ManyToManyField(
        EventType,
        blank=True,
        help_text="Event types that it may publish, unless it may publish all.",
    )

    developers = models.ManyToManyField(
        User,
        blank=True,
        related_name="publishers",
        help_text="People with the role Developers who see its messages and deliveries.",
    )

    errors_to = models.CharField(
        "errors to",
        max_length=2 * MAX_NAME_LENGTH + 1,
        blank=True,
        default="",
        help_text="Recipient of failures to deliver its messages, unless a message has ErrorsTo: a "
        "subscriber, or subscriber/subscription, with a subscription to Inturn.Delivery.Failed; - "
        "for nobody. Empty: every matching subscription.",
    )

    def may_publish(self, event_type: EventType) -> bool:
        return self.all_event_types or self.event_types.filter(pk=event_type.pk).exists()
