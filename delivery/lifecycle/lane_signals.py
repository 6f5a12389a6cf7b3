"""Creating each subscriber's lane, in the transaction that creates the subscriber."""

from typing import Any

from django.db.models.signals import post_save
from django.dispatch import receiver

from delivery.models import Lane, LaneKind
from subscriptions.models import Subscriber


@receiver(post_save, sender=Subscriber)
def make_lane(*, instance: Subscriber, created: bool, **_: Any) -> None:
    if created:
        Lane.objects.create(kind=LaneKind.TOPIC, subscriber=instance)
