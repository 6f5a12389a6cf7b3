"""Replies on the pages of messages and deliveries: message and reply link to each other."""

import pytest
from django.conf import settings
from django.test import Client

from delivery.models import Delivery, Message
from delivery.publishing.callback_tokens import make_token
from delivery.publishing.reply_headers import reply_key
from tests.support import factories
from tests.unit.delivery.api.client import Caller


@pytest.fixture
def sent(db: None) -> Delivery:
    factories.event_type("Quote.Made")
    message = factories.message(headers={"replyto": "Quote.Made"})
    return factories.delivery(
        message=message, subscription=factories.subscription(event_type=message.event_type)
    )


def token(to: Delivery) -> str:
    return make_token(to.pk, key=reply_key(settings.SECRET_KEY))


def replied(to: Delivery) -> Message:
    answer = Caller(None).ask("POST", f"/replies/{token(to)}", b"{}")
    assert answer.status == 202, answer
    return Message.objects.get(event_type__name="Quote.Made")


def page(client: Client, of: str, id: int) -> str:
    return client.get(f"/admin/delivery/{of}/{id}/change/").text


def link(of: str, id: int) -> str:
    return f'/admin/delivery/{of}/{id}/change/"'


def test_a_message_shows_its_replies_and_a_reply_its_message(ann: Client, sent: Delivery) -> None:
    assert "Replies" not in page(ann, "message", sent.message_id)
    reply = replied(sent)
    shown = page(ann, "message", sent.message_id)
    assert "Replies" in shown
    assert link("message", reply.pk) in shown
    shown = page(ann, "message", reply.pk)
    assert "Reply to" in shown
    assert link("message", sent.message_id) in shown
    assert link("delivery", sent.pk) in shown


def test_the_request_shows_where_a_reply_goes_without_the_token(
    ann: Client, sent: Delivery
) -> None:
    factories.attempt(sent)
    shown = page(ann, "delivery", sent.pk)
    assert "/replies/$TOKEN" in shown
    assert token(sent) not in shown + page(ann, "message", sent.message_id)


def test_the_request_of_a_reply_shows_what_it_replies_to(ann: Client, sent: Delivery) -> None:
    reply = replied(sent)
    row = factories.delivery(message=reply)
    factories.attempt(row)
    shown = page(ann, "delivery", row.pk)
    assert f"inturn-replied-delivery: {sent.pk}" in shown
    assert "/replies/$TOKEN" not in shown
