"""The branches of a message: callbacks and replies, and the answered message."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.utils import timezone

from delivery.models import Callback, Message, Reply
from delivery.models.lane import CALLBACK_EVENT_TYPE
from delivery.models.message import public_id
from delivery.publishing.callbacks import State, callback_state
from delivery.publishing.reply_headers import correlation, may_be_replied_to
from subscriptions.models import Kind

SHOWN_REPLIES = 100


SHOWN = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownCallback:
    callback: Callback
    state: State

    @property
    def answer(self) -> str:
        return "" if self.callback.answer_id is None else public_id(self.callback.answer_id)


def callbacks_of(message: Message) -> list[ShownCallback]:
    """Return one for each group that may answer, or has answered.

    Query the database only for messages that can have callbacks.
    """
    if message.event_type.kind != Kind.QUEUE and message.event_type.name != CALLBACK_EVENT_TYPE:
        return []
    now = timezone.now()
    callbacks = Callback.objects.filter(message=message).order_by("queue_group")[:SHOWN]
    return [
        ShownCallback(callback=callback, state=callback_state(callback, now=now))
        for callback in callbacks
    ]


def answered_by(message: Message) -> Callback | None:
    """Return the callback that this message answers."""
    if message.event_type.name != CALLBACK_EVENT_TYPE:
        return None
    return (
        Callback.objects.select_related("message")
        .defer("message__body")
        .filter(answer=message)
        .first()
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Branches:
    """`answered` is set if the message is a callback's answer, `replied` if it is a reply."""

    callbacks: Sequence[ShownCallback] = ()
    answered: Callback | None = None
    replies: Sequence[Reply] = ()
    replied: Reply | None = None


def branches_of(message: Message) -> Branches:
    """Load the branches, with queries only for messages with possible branches."""
    return Branches(
        callbacks=callbacks_of(message),
        answered=answered_by(message),
        replies=_replies_to(message),
        replied=_replied_by(message),
    )


def _replies_to(message: Message) -> list[Reply]:
    """Return the first replies; query the database only for messages with any."""
    if not may_be_replied_to(message.headers, event=message.event_type.name):
        return []
    return list(Reply.objects.filter(message=message).order_by("delivery_id")[:SHOWN_REPLIES])


def _replied_by(message: Message) -> Reply | None:
    """Return the message answered by this reply; None also after the removal of this message."""
    if not correlation(message.headers):
        return None
    return Reply.objects.filter(reply=message).first()
