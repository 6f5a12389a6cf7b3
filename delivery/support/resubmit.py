"""Resubmitting: a settled delivery is sent again, unchanged or as an edited copy.

An unchanged delivery is the same delivery at the old place, so the order of the lane is kept, and
is marked as a redelivery. A delivery whose success is recorded is never sent again; it can only be
sent as an edited copy: a new message for this single subscription, while the old delivery stays as
it is.

If two people, or a person and a sender, act at once, each change is a single conditional UPDATE,
and the second finds nothing to change. The failure is reported before the row forgets the cause
(see `delivery.publishing.failures`).
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import orjson
from django.conf import settings
from django.db import transaction

from delivery.database.queries import first_row
from delivery.lifecycle import journal, notifier, transitions
from delivery.lifecycle.transitions import RESUBMITTABLE
from delivery.models import Delivery, JournalKind, Message, Status
from delivery.models.message import public_id
from delivery.publishing import callbacks, failures
from delivery.publishing.callback_urls import callback_target
from delivery.publishing.drafts import Draft, check_body
from delivery.states import OPEN
from subscriptions import changes
from subscriptions.models import Kind
from subscriptions.values.counts import counted

_SUCCESSES = (Status.DELIVERED, Status.REDUNDANT, Status.DUPLICATE)
REMOVED = "It no longer exists: retention has just removed it."


@dataclass(frozen=True, slots=True, kw_only=True)
class Possible:
    """The actions that a delivery's status allows."""

    resubmit: bool
    edit: bool
    mark_delivered: bool
    cancel: bool

    @property
    def anything(self) -> bool:
        return self.resubmit or self.edit or self.mark_delivered or self.cancel


def possible(row: Delivery) -> Possible:
    # A SYNC delivery was answered while its publisher waited: it has no lane to return to.
    has_place = row.lane_id is not None or row.subscription.has_place_without_lane
    return Possible(
        resubmit=row.status in RESUBMITTABLE and has_place,
        edit=row.status not in OPEN and has_place,
        mark_delivered=row.status == Status.IN_DOUBT,
        cancel=row.status in (*OPEN, Status.IN_DOUBT),
    )


class NotResubmittedError(Exception):
    """Nothing was changed; the message has the reason and the alternative."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """The replacement for a message; header names are lower-case and hyphenated."""

    headers: Mapping[str, str]
    content_type: str
    body: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Copy:
    """The stored copy of a message, and the delivery."""

    message_id: int
    delivery_id: int


def resubmit_delivery(delivery_id: int, *, actor: str) -> None:
    """Reopen a settled delivery and send it at once; raises NotResubmittedError."""
    with transaction.atomic():
        if not (statuses := _reopen([delivery_id], actor=actor)):
            raise NotResubmittedError(refusal_reason(delivery_id))
        text = f"It was {statuses[delivery_id]} and is sent again."
        journal.record_entry(JournalKind.RESUBMITTED, text, actor=actor, delivery_id=delivery_id)
        _nudge(delivery_id)


def resubmit_some(delivery_ids: Collection[int], *, actor: str) -> int:
    """Reopen the selected deliveries that may be sent again; return their number."""
    with transaction.atomic():
        count = len(_reopen(delivery_ids, actor=actor))
        if count:
            journal.record_entry(
                JournalKind.RESUBMITTED, f"Sent again: {counted(count, 'delivery')}.", actor=actor
            )
    return count


def resubmit_edited(delivery: Delivery, edit: Edit, *, actor: str) -> Copy:
    """Publish an edited copy of the delivery's message, for the subscription alone.

    The delivery must be settled, and stays as it is. Raises NotResubmittedError,
    PublishRefusedError if the event type refuses the body, and CallbackRefusedError for a
    `CallbackURL`.
    """
    event_type = delivery.message.event_type
    check_body(
        Draft(
            event_type=event_type,
            headers=edit.headers,
            body=edit.body,
            content_type=edit.content_type,
        )
    )
    callback = callback_target(edit.headers) if event_type.kind == Kind.QUEUE else None
    with transaction.atomic():
        row = first_row("accept_edited", _columns(delivery, edit))
        if row is None:
            raise NotResubmittedError(_why_not_edited(delivery.pk))
        copy, (lane_id, subscriber_id) = Copy(*row[:2]), row[2:]
        callbacks.add_callbacks([(copy.message_id, callback)] if callback else [])
        text = (
            f"{public_id(delivery.message_id)} was edited and is sent as "
            f"{public_id(copy.message_id)}."
        )
        journal.record_entry(
            JournalKind.RESUBMITTED, text, actor=actor, delivery_id=copy.delivery_id
        )
        _log_copy(copy, delivery, actor=actor)
        _notify(lane_id, subscriber_id)
    return copy


def refusal_reason(delivery_id: int) -> str:
    """Return why a delivery cannot be sent again unchanged, and the alternative."""
    row = Delivery.objects.select_related("subscription").filter(pk=delivery_id).first()
    if row is None:
        return REMOVED
    if row.status in OPEN:
        return f"It is {row.status}: it is on its way already."
    if row.status in _SUCCESSES:
        return (
            f"It is {row.status}: received messages are not sent again. "
            "Give a body to send an edited copy."
        )
    if row.status == Status.SHADOW:
        return (
            "It is SHADOW: it was recorded only, and is not sent. "
            "Make its subscription ACTIVE and replay the message."
        )
    if row.lane_id is None and not row.subscription.has_place_without_lane:
        return "Its publisher waited for the answer, and waits no more; publish another message."
    if row.queue_group is not None and _has_delivered_sibling(row):
        return (
            "Another endpoint of its group has taken the message. "
            "Give a body to send an edited copy."
        )
    return "It has just changed; reload it and try again."


def _reopen(delivery_ids: Collection[int], *, actor: str) -> dict[int, str]:
    """Reopen deliveries, record the changes, and return the former status of those now PENDING."""
    failures.publish_notices_of(delivery_ids)
    statuses = dict(Delivery.objects.filter(pk__in=delivery_ids).values_list("pk", "status"))
    reopened = transitions.reopen_deliveries(delivery_ids, reason=f"resubmitted by {actor}")
    for id in reopened:
        before, after = {"status": statuses[id]}, {"status": Status.PENDING.value}
        changes.record_change(
            actor=actor, action="resubmitted", instance=Delivery(pk=id), before=before, after=after
        )
    return {id: statuses[id] for id in reopened}


def _log_copy(copy: Copy, delivery: Delivery, *, actor: str) -> None:
    values = {
        "edited_from": public_id(delivery.message_id),
        "subscription": str(delivery.subscription),
    }
    instance = Message(pk=copy.message_id)
    changes.record_change(
        actor=actor, action="resubmitted", instance=instance, before=None, after=values
    )


def _why_not_edited(delivery_id: int) -> str:
    row = Delivery.objects.select_related("subscription").filter(pk=delivery_id).first()
    if row is None:
        return REMOVED
    if row.lane_id is None and not row.subscription.has_place_without_lane:
        return "It was answered while its publisher waited; publish another message."
    return f"It is {row.status}, so it would be sent as well as its copy; cancel it first."


def _has_delivered_sibling(row: Delivery) -> bool:
    group = Delivery.objects.of_message(row.message_id).filter(queue_group=row.queue_group)
    return group.filter(status=Status.DELIVERED).exists()


def _nudge(delivery_id: int) -> None:
    """End the pause of the lane, because a person waits; mailboxes are notified already."""
    lane_id = Delivery.objects.values_list("lane_id", flat=True).get(pk=delivery_id)
    if lane_id is not None:
        notifier.nudge_lanes(lane_id)


def _notify(lane_id: int | None, subscriber_id: int) -> None:
    if lane_id is None:
        transaction.on_commit(lambda: notifier.notify_of_messages([subscriber_id]))
    else:
        transaction.on_commit(lambda: notifier.notify_of_work([lane_id]))


def _columns(delivery: Delivery, edit: Edit) -> dict[str, object]:
    return {
        "delivery": delivery.pk,
        "headers": orjson.dumps(dict(edit.headers)).decode(),
        "content_type": edit.content_type,
        "body": edit.body,
        "queue_senders": settings.ENVIRONMENT.queue_senders,
        "mailbox_days": settings.ENVIRONMENT.mailbox_days,
    }
