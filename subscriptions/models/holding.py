"""Holding: matched and stored deliveries are not sent. Shadowing: matches are recorded, never sent.

| status | published messages | waiting deliveries |
|---|---|---|
| ACTIVE | match | are sent |
| HELD | match and are stored | wait |
| SHADOW | match and are recorded | wait |
| INACTIVE | do not match | wait |

SHADOW is for subscriptions alone. The record is a delivery settled as SHADOW in the publishing
transaction (see `delivery.publishing.shadow`).

A subscription has a status, the subscriber has a status, and the installation has a status for all
sending, ACTIVE or HELD. A delivery is sent only while all three are ACTIVE. The view
`subscriptions_standing` combines them for each subscription.
"""

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models

SLOWEST_RATE, FASTEST_RATE = 0.01, 1000.0


class SubscriptionStatus(models.TextChoices):
    """The status of a subscription."""

    ACTIVE = "ACTIVE"
    HELD = "HELD"
    SHADOW = "SHADOW"
    INACTIVE = "INACTIVE"


class SubscriberStatus(models.TextChoices):
    """The status of a subscriber."""

    ACTIVE = "ACTIVE"
    HELD = "HELD"
    INACTIVE = "INACTIVE"


class Sending(models.TextChoices):
    """The status of the installation."""

    ACTIVE = "ACTIVE", "ACTIVE: deliveries are sent"
    HELD = "HELD", "HELD: nothing is sent or handed out"


class Holdable(models.Model):
    """An object with status HELD, the end of the hold and the rate of sending the backlog."""

    held_until = models.DateTimeField(
        null=True,
        editable=False,
        help_text="HELD: when it is released by itself; empty: by a person.",
    )
    catch_up_rate = models.FloatField(
        null=True,
        editable=False,
        validators=[MinValueValidator(SLOWEST_RATE), MaxValueValidator(FASTEST_RATE)],
        help_text="HELD: deliveries per second and subscriber from the backlog, once it is "
        "released; empty: as fast as possible.",
    )

    class Meta:
        abstract = True


class Installation(Holdable):
    """A single row; if it is missing, nothing is held."""

    sending = models.CharField(max_length=8, choices=Sending, default=Sending.ACTIVE)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints = [
            models.CheckConstraint(name="installation_is_one_row", condition=models.Q(pk=1)),
            models.CheckConstraint(
                name="installation_ends_holding",
                condition=models.Q(sending="HELD") | models.Q(held_until=None, catch_up_rate=None),
            ),
        ]

    def __str__(self) -> str:
        return "the installation"
