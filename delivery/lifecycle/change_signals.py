"""Notifying the senders of every recorded change of configuration, however it was made."""

from typing import Any

from django.db.models.signals import post_save
from django.dispatch import receiver

from delivery.lifecycle import wake
from subscriptions.models import ConfigurationChange


@receiver(post_save, sender=ConfigurationChange)
def notify_senders(**_: Any) -> None:
    wake.changed()
