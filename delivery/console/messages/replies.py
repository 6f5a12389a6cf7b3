"""Replies on the page of a message: who replied to it, and to which delivery it is the reply."""

from delivery.models import Message, Reply
from delivery.publishing.reply_headers import correlation, wants_reply

SHOWN = 100


def replies_to(message: Message) -> list[Reply]:
    """Return the first replies; query the database only for messages that want any."""
    if not wants_reply(message.headers, event=message.event_type.name):
        return []
    return list(Reply.objects.filter(message=message).order_by("delivery_id")[:SHOWN])


def replied_by(message: Message) -> Reply | None:
    """Return what this message is the reply to; None also after that message was removed."""
    if not correlation(message.headers):
        return None
    return Reply.objects.filter(reply=message).first()
