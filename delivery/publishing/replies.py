"""Replies: the receiver of a delivery answers the message by a message, once and once only.

    published with ReplyTo ─▶ sent or fetched ─▶ the receiver replies ─▶ REPLIED, for ever

A message published with `ReplyTo: <event type>` is sent with the header `inturn-reply`: a URL with
a token of the delivery (`reply_headers`). Nothing is stored for it. A mailbox client replies by the
receipt instead. The reply is a message of the named event type, published by Inturn: it has no
publisher, and the headers `inturn-replied-…` name the answered message.

**Once.** A row of `delivery_reply` and the reply are stored in one transaction (`take_reply.sql`,
then `accept.sql`). Of several replies at the same moment the first inserts the row; the others wait
for its commit. The same body then gets the first answer, another body is refused (409). The
endpoints of a QUEUE group have a single reply together, as a single endpoint is to do the work. A
resubmitted delivery is the same delivery: another reply is a repetition, or refused. An edited copy
is a separate delivery, with a separate reply. A replay gets no replies, as it has no callbacks.

**Which deliveries.** Token and receipt prove an attempt of the delivery, whatever the status: a
reply may come before the attempt's outcome is recorded, for a delivery IN_DOUBT, FAILED (the
receiver replied, but answered too late) or CANCELLED meanwhile. The delivery's row is read and not
locked, so replying waits for no sender and no sender for a reply. Retention locks a message before
it removes it, and so does `take_reply.sql`: either there is a reply in time, or a 410.

**Crashes.** Before the commit nothing is stored, and after it everything. A receiver without our
202 repeats the reply, and gets the answer of the first.

**Rights.** A token grants a single message of an event type. The event type is looked up again for
each reply: the message's publisher (of an edited copy: the original's) must be allowed to publish
it. So a header `ReplyTo` stored without a check (edited, restored) grants nothing more. If the
named destination does not exist any more, the reply is stored for nobody, with an entry in the
journal: to publish it to all might show it to people for whom it is not.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import Q

from delivery.database import queries
from delivery.models import Delivery, JournalEntry, JournalKind, Message, Reply
from delivery.models.message import public_id
from delivery.publishing.callback_tokens import read_token
from delivery.publishing.drafts import Draft
from delivery.publishing.publish import publish_own
from delivery.publishing.reply_headers import may_be_replied_to, reply_key
from delivery.publishing.stored_messages import Accepted
from subscriptions.matching.destinations import EVERYBODY, Destination, UnknownDestinationError
from subscriptions.matching.reply_to import (
    REPLY_TO,
    ReplyTo,
    ReplyToRefusedError,
    find_reply_to,
)
from subscriptions.models import Publisher
from subscriptions.values.forwarding import REPLIED_PREFIX

# They would control the publication, which the message's publisher decides.
_NOT_OF_RECEIVER = frozenset(
    {"callbackurl", "destination", "errorsto", "idempotency-key", REPLY_TO}
)
# No subscriber has this id.
_NOBODY: frozenset[int] = frozenset()


class ReplyRefusedError(Exception):
    """This reply is refused; the message has the reason and the remedy."""

    def __init__(self, detail: str, *, status: int, code: str) -> None:
        super().__init__(detail)
        self.detail = detail
        self.status = status
        self.code = code


@dataclass(frozen=True, slots=True, kw_only=True)
class Replied:
    """A delivery open for a reply, and the message, without the body."""

    delivery: Delivery
    message: Message


def delivery_of_token(token: str) -> int:
    """Return the id of the delivery; raise ReplyRefusedError 404. Takes no query."""
    delivery_id = read_token(token, key=reply_key(settings.SECRET_KEY))
    if delivery_id is None:
        detail = "There is no such address for replies; use the header Inturn-Reply unchanged."
        raise ReplyRefusedError(detail, status=404, code="no-such-reply")
    return delivery_id


def find_replied(delivery_id: int) -> Replied:
    """Return an attempted delivery; raise ReplyRefusedError.

    409 if the message wants no reply, 410 if it was removed.
    """
    delivery = (
        Delivery.objects.filter(pk=delivery_id)
        .select_related("subscription__subscriber")
        .defer("subscription__headers", "subscription__auth", "subscription__subscriber__headers")
        .first()
    )
    message = None if delivery is None else _message(delivery.message_id)
    if delivery is None or message is None:
        raise _removed()
    event, replay_id = message.event_type.name, delivery.replay_id
    if not may_be_replied_to(message.headers, event=event, replay_id=replay_id):
        why = "published without ReplyTo" if replay_id is None else "delivered by a replay"
        detail = f"{message.public_id} was {why}, so no reply is wanted."
        raise ReplyRefusedError(detail, status=409, code="no-reply-wanted")
    return Replied(delivery=delivery, message=message)


def earlier_reply(replied: Replied, body: bytes) -> Accepted | None:
    """Return the answer to the first reply, None if there was none.

    Raise ReplyRefusedError 409 if the first reply had another body.
    """
    delivery = replied.delivery
    same = Q(delivery_id=delivery.pk)
    if delivery.queue_group is not None:
        same |= Q(message=replied.message, queue_group=delivery.queue_group)
    found = Reply.objects.filter(same).first()
    if found is None:
        return None
    assert found.reply_id is not None, "it is committed with its reply"
    if bytes(found.digest) != _digest(body):
        of = "" if found.delivery_id == delivery.pk else " by another endpoint of its group"
        detail = (
            f"This delivery was replied to{of}, by {public_id(found.reply_id)} with another body; "
            "one reply counts. Publish a message of your own to say more."
        )
        raise ReplyRefusedError(detail, status=409, code="replied-already")
    return Accepted(found.reply_id, found.deliveries)


def reply_target(replied: Replied) -> ReplyTo:
    """Return the draft of the reply; raise ReplyRefusedError if impossible."""
    publisher = _publisher_of(replied.message)
    if publisher is None:
        detail = f"The publisher of {replied.message.public_id} is not known any more."
        raise ReplyRefusedError(detail, status=410, code="removed")
    try:
        return find_reply_to(replied.message.headers[REPLY_TO], publisher=publisher)
    except ReplyToRefusedError as refused:
        raise ReplyRefusedError(refused.detail, status=refused.status, code=refused.code) from None


def headers_of_reply(replied: Replied, sent: Mapping[str, str]) -> dict[str, str]:
    """Return the receiver's headers with the correlation."""
    delivery = replied.delivery
    said = {
        "message": replied.message.public_id,
        "delivery": str(delivery.pk),
        "subscriber": delivery.subscription.subscriber.name,
        "subscription": delivery.subscription.name,
    }
    own = {name: value for name, value in sent.items() if name not in _NOT_OF_RECEIVER}
    return own | {REPLIED_PREFIX + name: value for name, value in said.items()}


def destination_of_reply(reply_to: ReplyTo) -> Destination:
    """Return the destination; nobody if the named subscriber does not exist any more."""
    if not reply_to.destination:
        return EVERYBODY
    try:
        return reply_to.found_destination()
    except UnknownDestinationError:
        return Destination(reply_to.destination, _NOBODY)


def publish_reply(replied: Replied, draft: Draft) -> Accepted:
    """Publish the reply, or return the answer to the first; raise ReplyRefusedError.

    When it returns, everything is on disk and the senders are notified.
    """
    try:
        accepted = _publish(replied, draft)
    except IntegrityError:
        # A subscription or the event type was deleted since it was found: look again.
        reply_target(replied)
        accepted = _publish(replied, draft)
    if accepted is not None:
        return accepted
    accepted = earlier_reply(replied, draft.body)
    if accepted is None:
        raise _removed()
    return accepted


def _publish(replied: Replied, draft: Draft) -> Accepted | None:
    """Publish the reply; None if there is an earlier reply, or the message is gone."""
    delivery = replied.delivery
    columns = {
        "message": replied.message.pk,
        "delivery": delivery.pk,
        "queue_group": delivery.queue_group,
        "digest": _digest(draft.body),
    }
    with transaction.atomic():
        (is_taken,) = queries.row("take_reply", columns)
        if not is_taken:
            return None
        (accepted,) = publish_own([draft])
        Reply.objects.filter(delivery_id=delivery.pk).update(
            reply_id=accepted.message_id, deliveries=accepted.deliveries
        )
        if not accepted.deliveries:
            _note_unwanted(accepted, draft, delivery)
    return accepted


def _note_unwanted(accepted: Accepted, draft: Draft, delivery: Delivery) -> None:
    to = f", delivered to {draft.destination.name}" if draft.destination.name else ""
    text = (
        f"{public_id(accepted.message_id)}, the reply to delivery {delivery.pk}{to}, matched no "
        "subscription."
    )
    JournalEntry.objects.create(
        kind=JournalKind.UNMATCHED, text=text, message_id=accepted.message_id
    )


def _message(message_id: int) -> Message | None:
    rows = Message.objects.select_related("event_type", "publisher").defer("body")
    return rows.filter(pk=message_id).first()


def _publisher_of(message: Message) -> Publisher | None:
    """Return the publisher; of an edited copy the original's."""
    original: Message | None = message
    while original is not None and original.publisher is None:
        original = None if original.edited_from_id is None else _message(original.edited_from_id)
    return None if original is None else original.publisher


def _removed() -> ReplyRefusedError:
    detail = (
        "The message was removed, for its retention ended: it is too late for a reply. Publish a "
        "message of your own instead."
    )
    return ReplyRefusedError(detail, status=410, code="removed")


def _digest(body: bytes) -> bytes:
    return hashlib.sha256(body).digest()
