"""Messages and deliveries as a publisher's developers see them: models for rights of their own.

Who may view these may not view Message and Delivery: every page about those stays closed.
"""

from delivery.models.delivery import Delivery
from delivery.models.message import Message


class OwnMessage(Message):
    """A message of a publisher developed by the reader: see `delivery.models.reach`."""

    class Meta:
        proxy = True
        default_permissions = ("view",)
        ordering = ["-id"]
        verbose_name = "own message"


class OwnDelivery(Delivery):
    class Meta:
        proxy = True
        default_permissions = ("view",)
        verbose_name = "own delivery"
        verbose_name_plural = "own deliveries"
