"""The branches of a message: its callbacks and replies, and what it is itself an answer to."""

from collections.abc import Sequence
from dataclasses import dataclass

from delivery.console.messages.callbacks import ShownCallback, answered_by, callbacks_of
from delivery.console.messages.replies import replied_by, replies_to
from delivery.models import Callback, Message, Reply


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
        replies=replies_to(message),
        replied=replied_by(message),
    )
