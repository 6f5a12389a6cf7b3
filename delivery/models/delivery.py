"""A delivery: a message on the way to a subscription; the row always has the state."""

from collections.abc import Iterable
from functools import reduce
from operator import or_

from django.db import models
from django.db.models import OuterRef, Q

from delivery.models.callback import Callback
from delivery.models.lane import Lane
from delivery.models.message import Message
from delivery.models.replay import Replay
from delivery.states import Status
from subscriptions.models import Subscription


class Redelivery(models.TextChoices):
    """Why a delivery is sent again; the value of the header `inturn-redelivery`."""

    NONE = "", "–"
    IN_DOUBT = "in-doubt", "a sender died after sending it"
    RESUBMITTED = "resubmitted", "a person sent it again"


# A delivery's id is the message's id and, in the lowest bits, the place among the message's
# deliveries. So the order of ids is the order of publication, and the deliveries of a message are a
# range of ids: no index on their message is needed.
PLACE_BITS = 20
MAX_MESSAGE_ID = 1 << (63 - PLACE_BITS)
# Places from here on belong to replays, one for each replay, by number.
REPLAYED_PLACES = 1 << (PLACE_BITS - 1)


def delivery_id(message_id: int, place: int) -> int:
    """Return the id of a message's delivery; places count from 0."""
    return message_id << PLACE_BITS | place


def ids_of_message(message_id: int) -> tuple[int, int]:
    """Return the first and the last possible id of a message's deliveries.

    The range is empty for a number too large for a message.
    """
    if message_id >= MAX_MESSAGE_ID:
        return 1, 0
    return delivery_id(message_id, 0), delivery_id(message_id + 1, 0) - 1


class DeliveryQuerySet(models.QuerySet["Delivery"]):
    def pending(self) -> "DeliveryQuerySet":
        return self.filter(status=Status.PENDING)

    def of_message(self, message_id: int) -> "DeliveryQuerySet":
        """Keep the deliveries of a message."""
        return self.filter(pk__range=ids_of_message(message_id))

    def of_messages(self, message_ids: Iterable[int]) -> "DeliveryQuerySet":
        """Keep the deliveries of some messages, as many as are on a page."""
        ranges = (Q(pk__range=ids_of_message(id)) for id in message_ids)
        return self.filter(reduce(or_, ranges, Q(pk__in=[])))

    def of_outer_message(self) -> "DeliveryQuerySet":
        """Keep, in a subquery, the deliveries of the outer query's message."""
        message_id = OuterRef("pk")
        return self.filter(
            pk__gte=message_id * 2**PLACE_BITS, pk__lt=(message_id + 1) * 2**PLACE_BITS
        )


class Delivery(models.Model):
    """A delivery; `delivery/README.md` lists the statements behind each change of the status.

    The table has two partitions by status, `delivery_waiting` and `delivery_settled`; their
    migration has indexes and constraints. To settle a delivery is to delete the row in the first
    and to insert it into the second. A statement waiting for the lock of a row settled meanwhile
    does not get it: the row is gone from this partition.

    `attempts` counts the recorded attempts; of those, `attempts_before` do not count against the
    policy's `max_attempts`: they were made before a person resubmitted it. `settled_before` counts
    the settlements ended by a person, by a resubmission or by resolving IN_DOUBT: their rows are in
    EarlierSettlement. `skipped` marks a failed and overtaken delivery: a run holds at most half of
    such. `reason` is the last attempt's outcome in words. `queue_group` is fixed when a QUEUE
    message is published, whatever later happens to the filters: in a group at most one delivery is
    DELIVERED. A delivery with a `callback` goes to the callback's URL.

    A delivery of a PULL subscription is in no lane, but in the subscriber's mailbox. The client of
    the last fetch, at `leased_at`, holds it until `lease_expires_at`, by `lease_token`; then it is
    available again, without a change of the row. `next_attempt_at` is the end of the delay if it
    was released with a delay. The n-th fetch (`receive_count`) is attempt n.

    A DELIVERED delivery holds the successful attempt (`started_at`, `duration_ms`, `status_code`),
    unless it is a LoggedAttempt. A delivery not settled by `expires_at` is EXPIRED. A delivery of a
    VOLATILE message has the start of the database server it was published under,
    `server_started_at`: under another server start it is not sent any more, but EXPIRED.
    """

    id = models.BigIntegerField(primary_key=True)
    # No constraints with a look-up for each delivery: they took half of the cost of storing a
    # delivery. Instead:
    # - Message: a delivery is inserted by the statement which inserts the message, or with the
    #   message locked (`keep_messages`) as retention locks it.
    # - Subscription: the inserting statement locks it (`FOR KEY SHARE`), or another referring row;
    #   a trigger refuses to delete a row with deliveries.
    # - Lane: it lives as long as the subscriber, which a subscription protects.
    # - Callback: it is deleted only with the message and the answer; the answer's deliveries are
    #   those of the callback.
    # - Replay: nothing deletes a row.
    message = models.ForeignKey(
        Message,
        on_delete=models.PROTECT,
        related_name="deliveries",
        db_index=False,
        db_constraint=False,
    )
    subscription = models.ForeignKey(
        Subscription,
        on_delete=models.PROTECT,
        related_name="deliveries",
        db_index=False,
        db_constraint=False,
    )
    lane = models.ForeignKey(
        Lane,
        on_delete=models.PROTECT,
        null=True,
        related_name="deliveries",
        db_index=False,
        db_constraint=False,
    )
    queue_group = models.SmallIntegerField(
        null=True, help_text="Of a QUEUE message: the group it belongs to, counted from 0."
    )
    callback = models.ForeignKey(
        Callback,
        on_delete=models.PROTECT,
        null=True,
        related_name="deliveries",
        db_index=False,
        db_constraint=False,
    )
    replay = models.ForeignKey(
        Replay,
        on_delete=models.PROTECT,
        null=True,
        related_name="deliveries",
        db_index=False,
        db_constraint=False,
        help_text="The replay that created it, if it was not the publication.",
    )
    status = models.CharField(max_length=15, choices=Status, default=Status.PENDING)
    attempts = models.IntegerField(default=0)
    attempts_before = models.IntegerField(default=0, db_default=0)
    settled_before = models.IntegerField(default=0, db_default=0)
    skipped = models.BooleanField(default=False)
    redelivery = models.CharField(
        max_length=12, choices=Redelivery, blank=True, default=Redelivery.NONE
    )
    reason = models.TextField(blank=True, default="")
    next_attempt_at = models.DateTimeField(null=True)
    expires_at = models.DateTimeField(null=True)
    server_started_at = models.DateTimeField(null=True)
    settled_at = models.DateTimeField(null=True)
    leased_at = models.DateTimeField(null=True)
    lease_token = models.UUIDField(null=True)
    lease_expires_at = models.DateTimeField(null=True)
    receive_count = models.IntegerField(default=0)
    started_at = models.DateTimeField(null=True, help_text="Of the attempt that delivered it.")
    duration_ms = models.IntegerField(null=True)
    status_code = models.SmallIntegerField(null=True)
    priority = models.SmallIntegerField(
        null=True,
        help_text=(
            "While it waits: the priority of its message, if its subscriber sends by priority."
        ),
    )

    objects = DeliveryQuerySet.as_manager()

    class Meta:
        verbose_name_plural = "deliveries"
        ordering = ["-id"]

    def __str__(self) -> str:
        return f"delivery {self.pk}"
