"""Callbacks on the page of a message: who may answer it, and which message it answers."""

from dataclasses import dataclass

from django.utils import timezone

from delivery.models import Callback, Message
from delivery.models.lane import CALLBACK_EVENT_TYPE
from delivery.models.message import public_id
from delivery.publishing.callbacks import State, callback_state
from subscriptions.models import Kind

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
