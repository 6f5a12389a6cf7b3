"""A publisher: an application allowed to publish."""

from django.db import models

from subscriptions.models.event_type import EventType
from subscriptions.models.named import Named


class Publisher(Named):
    all_event_types = models.BooleanField(
        default=True, help_text="May publish every event type, also those made later."
    )
    event_types = models.ManyToManyField(
        EventType, blank=True, help_text="What it may publish, unless it may publish all."
    )

    def may_publish(self, event_type: EventType) -> bool:
        return self.all_event_types or self.event_types.filter(pk=event_type.pk).exists()
