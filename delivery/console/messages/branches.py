"""The branches of a message: its callbacks and replies, and the message that it answers."""

from collections.abc import Sequence
from dataclasses import dataclass

from delivery.console.messages.callbacks import ShownCallback, answered_by, callbacks_of
from delivery.models import Callback, Message, Reply
from delivery.publishing.reply_headers import correlation, may_be_replied_to

SHOWN_REPLIES = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Branches:
    """`answered` is the callback, and `replied` the reply, that the message is."""

    callbacks: Sequence[ShownCallback] = ()
    answered: Callback | None = None
    replies: Sequence[Reply] = ()
    replied: Reply | None = None


def branches_of(message: Message) -> Branches:
    """Load the branches, with queries only for messages that can have any."""
    return Branches(
        callbacks=callbacks_of(message),
        answered=answered_by(message),
        replies=_replies_to(message),
        replied=_replied_by(message),
    )


def _replies_to(message: Message) -> list[Reply]:
    """Return the first replies; query the database only for messages that want any."""
    if not may_be_replied_to(message.headers, event=message.event_type.name):
        return []
    return list(Reply.objects.filter(message=message).order_by("delivery_id")[:SHOWN_REPLIES])


def _replied_by(message: Message) -> Reply | None:
    """Return the message that this one replies to; None also after that message was removed."""
    if not correlation(message.headers):
        return None
    return Reply.objects.filter(reply=message).first()
