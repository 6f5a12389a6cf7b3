"""The effects of other tables' changes, in their transactions: a lane, and notified senders."""

from typing import Any

from django.db.models.signals import post_save
from django.dispatch import receiver

from delivery.lifecycle import notifier
from delivery.models import Lane, LaneKind
from subscriptions.models import ConfigurationChange, Subscriber


@receiver(post_save, sender=Subscriber)
def make_lane(*, instance: Subscriber, created: bool, **_: Any) -> None:
    if created:
        Lane.objects.create(kind=LaneKind.TOPIC, subscriber=instance)


@receiver(post_save, sender=ConfigurationChange)
def notify_senders(**_: Any) -> None:
    notifier.notify_of_change()
