"""A message with a past: resubmitted by a job, held, edited, replayed, changed by a script."""

from dataclasses import dataclass
from datetime import timedelta

from django.db import transaction
from django.utils import timezone

from delivery.models import Delivery, Message, ScriptOutput
from delivery.states import OutcomeClass, Status
from delivery.support import toggle
from delivery.support.bulk_jobs import advance_job, start_job
from delivery.support.resubmit import Edit, resubmit_delivery, resubmit_edited
from subscriptions import changes
from subscriptions.models import EventType, Subscription
from tests.support import factories

BODY = b'{"id":1005,"customer":"J\\u00fcrgen M\\u00fcller","total":12.50}'
SENT = b'{"id":1005,"customer":"M.","total":12.50}'
SECONDS = timedelta(seconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedMessage:
    message: Message
    rejected: Delivery
    scripted: Delivery
    copy: Message


def traced_message() -> TracedMessage:
    """Publish to three subscriptions, of which one did not match and would today.

    The first delivery was resubmitted twice, by a job of sue and by bob; ann edited a copy of it.
    """
    event_type = factories.event_type("Shop.Order.Created")
    orders, cases, mail = (_subscription(name, event_type) for name in ("orders", "cases", "mail"))
    deactivate(mail)
    message = factories.message(
        BODY,
        event_type=event_type,
        publisher=factories.publisher("shop"),
        headers={"content-type": "application/json", "x-trace": "abc-1"},
        owed=2,
        published_at=timezone.now(),
    )
    rejected = _rejected(message, orders)
    resubmit_by_job(rejected)
    reject_again(rejected, number=2)
    resubmit_delivery(rejected.pk, actor="bob")
    reject_again(rejected, number=3)
    scripted = _scripted(message, cases)
    toggle.hold_owner(cases, actor="sue")
    toggle.activate_owner(mail, actor="ann")
    edit = Edit(headers=message.headers, content_type="application/json", body=SENT)
    fresh = Delivery.objects.select_related("message__event_type", "subscription__subscriber")
    copy = resubmit_edited(fresh.get(pk=rejected.pk), edit, actor="ann")
    return TracedMessage(
        message=message,
        rejected=fresh.get(pk=rejected.pk),
        scripted=fresh.get(pk=scripted.pk),
        copy=Message.objects.get(pk=copy.message_id),
    )


def _subscription(name: str, event_type: EventType) -> Subscription:
    row = factories.subscription(
        name, subscriber=factories.subscriber(f"crm-{name}"), event_type=event_type
    )
    changes.record_change(
        actor="ann", action="created", instance=row, before=None, after=changes.snapshot(row)
    )
    return row


def deactivate(row: Subscription) -> None:
    toggle.deactivate_owner(row, actor="ann")


def _rejected(message: Message, to: Subscription) -> Delivery:
    row = factories.delivery(message=message, subscription=to)
    reject_again(row, number=1)
    return row


def _attempt(row: Delivery, *, number: int) -> None:
    factories.attempt(
        row,
        number=number,
        outcome=OutcomeClass.CLIENT_ERROR,
        status_code=404,
        started_at=timezone.now(),
        error="404 Not Found",
        excerpt=b'{"error":"no such customer"}',
    )


def resubmit_by_job(row: Delivery) -> None:
    with transaction.atomic():
        job = start_job({"status": ["REJECTED"]}, rate=None, actor="sue")
        # The job takes deliveries settled before it, by the database's clock.
        type(job).objects.filter(pk=job.pk).update(created_at=timezone.now() + SECONDS)
        advance_job(timezone.now() + SECONDS)
    assert Delivery.objects.get(pk=row.pk).status == Status.PENDING


def reject_again(row: Delivery, *, number: int) -> None:
    Delivery.objects.filter(pk=row.pk).update(attempts=number)
    _attempt(row, number=number)
    factories.settle(row, Status.REJECTED)


def _scripted(message: Message, to: Subscription) -> Delivery:
    Subscription.objects.filter(pk=to.pk).update(script="message.body.customer = 'M.';")
    row = factories.delivery(message=message, subscription=to, attempts=1)
    factories.attempt(
        row,
        outcome=OutcomeClass.SERVER_ERROR,
        status_code=500,
        started_at=timezone.now(),
        error="500 Internal Server Error",
    )
    ScriptOutput.objects.create(delivery=row, script_version=1, body=SENT)
    return row
