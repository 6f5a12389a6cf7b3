"""The health of endpoints: a row for each DOWN endpoint, and a state for each.

The state combines this row with the health of the endpoint's URL. There are two tables because they
count different things: a sender pauses for a subscription, for the policy's time; the circuit
breaker counts at a URL, over all subscriptions with the URL. The view joins them.
"""

from django.db import models
from django.db.models.functions import Now

from delivery.states import EndpointState
from subscriptions.models import Subscription


class EndpointHealth(models.Model):
    """A DOWN endpoint; without a row there is no pause.

    The sender of the lane writes it, except for `next_try_at`, which a person may change. The row
    belongs to the last writing lane; several queue lanes may serve an endpoint. Any lane with a
    success deletes it, and so does a change of the endpoint (`forget_endpoint`). Without
    `next_try_at` it waits for a person.
    """

    subscription = models.OneToOneField(
        Subscription,
        on_delete=models.CASCADE,
        primary_key=True,
        db_constraint=False,
        related_name="+",
    )
    lane_id = models.BigIntegerField(db_index=True)
    since = models.DateTimeField(db_default=Now())
    reason = models.TextField()
    delivery_id = models.BigIntegerField(help_text="The delivery that failed last.")
    failures = models.PositiveIntegerField(help_text="In a row: the pause follows from it.")
    next_try_at = models.DateTimeField(null=True)

    class Meta:
        # People see the summary instead.
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.subscription} is DOWN"


class EndpointSummary(models.Model):
    """The state of the endpoint of each PUSH subscription. A read-only view.

    The circuit breaker's state takes precedence. `url` is the endpoint's URL while it is DISABLED
    or FROZEN, otherwise null.
    """

    subscription = models.OneToOneField(
        Subscription,
        on_delete=models.DO_NOTHING,
        primary_key=True,
        db_constraint=False,
        related_name="endpoint_summary",
    )
    state = models.CharField(max_length=8, choices=EndpointState)
    url = models.CharField(max_length=2000, null=True)  # noqa: DJ001 - of a view
    since = models.DateTimeField(null=True)
    reason = models.TextField()
    next_try_at = models.DateTimeField(null=True)

    class Meta:
        managed = False
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.subscription} is {self.state}"
