"""A message that wants replies, and the posts that reply to it."""

from collections.abc import Mapping

from django.conf import settings

from delivery.api import replies as view
from delivery.models import Delivery, Message
from delivery.publishing.callback_tokens import make_token
from delivery.publishing.reply_headers import reply_key
from subscriptions.models import Subscription
from tests.support import factories
from tests.unit.delivery.api.client import ApiAnswer, Caller

EVENT, REPLY = "Quote.Wanted", "Quote.Made"


def prepare() -> Subscription:
    """Create both event types; return the subscription that gets the messages."""
    view._bucket.cache_clear()
    factories.event_type(REPLY)
    owner = factories.subscriber("insurer")
    event_type = factories.event_type(EVENT)
    return factories.subscription("quotes", event_type=event_type, subscriber=owner)


def published(by: Caller, *, reply_to: str = REPLY) -> Delivery:
    answer = by.publish(EVENT, ReplyTo=reply_to)
    assert answer.status == 202, answer
    return Delivery.objects.get(message_id=int(answer.body["id"].removeprefix("msg_")))


def address(delivery: Delivery) -> str:
    return f"/replies/{make_token(delivery.pk, key=reply_key(settings.SECRET_KEY))}"


def post(
    by: Caller,
    to: Delivery,
    body: bytes = b'{"price": 5}',
    headers: Mapping[str, str] | None = None,
) -> ApiAnswer:
    return by.ask("POST", address(to), body, headers=headers)


def the_reply() -> Message:
    return Message.objects.get(event_type__name=REPLY)
