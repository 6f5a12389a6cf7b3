"""Callbacks on the pages of messages and deliveries: question and answer link to each other."""

from datetime import timedelta

import pytest
from django.conf import settings
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.utils import timezone

from delivery.models import Callback, Delivery, Message
from delivery.publishing import callbacks
from delivery.publishing.callback_tokens import callback_key, make_token
from delivery.publishing.callbacks import CallbackAnswer
from delivery.publishing.drafts import Draft
from delivery.publishing.publish import publish
from delivery.standing.callback_lane import read_callback_lane
from subscriptions.models import Kind
from tests.support import factories

URL = "https://publisher.example/answers?<b>"


@pytest.fixture
def callback(db: None) -> Callback:
    event_type = factories.event_type(kind=Kind.QUEUE)
    factories.subscription(event_type=event_type)
    publish(
        factories.publisher(),
        [Draft(event_type=event_type, headers={"callbackurl": URL}, body=b"{}")],
    )
    return Callback.objects.get()


def page(client: Client, message_id: int) -> str:
    return client.get(f"/admin/delivery/message/{message_id}/change/").text


def answered(callback: Callback, **headers: str) -> int:
    given = CallbackAnswer(headers=headers, content_type="text/plain", body=b"done")
    return callbacks.answer_callback(callback, given, now=timezone.now())


def test_a_message_shows_its_open_callbacks_and_their_end(ann: Client, callback: Callback) -> None:
    shown = page(ann, callback.message_id)
    for said in (
        "Callbacks",
        "WAITING",
        f'accepted until <time datetime="{callback.expires_at:%Y-%m-%d}',
    ):
        assert said in shown, said
    assert "https://publisher.example/answers?%3Cb%3E" in shown


def test_an_answer_and_its_message_link_to_each_other(ann: Client, callback: Callback) -> None:
    answer = answered(callback)
    shown = page(ann, callback.message_id)
    assert "ANSWERED" in shown
    assert f"/admin/delivery/message/{answer}/change/" in shown
    assert (
        f'/admin/delivery/message/{callback.message_id}/change/">msg_{callback.message_id}</a>'
        in page(ann, answer)
    )


def test_the_overview_and_the_metrics_show_answers_that_wait(
    ann: Client, callback: Callback
) -> None:
    assert "Callback lane" not in ann.get("/admin/").text
    answer = answered(callback)
    assert "Callback lane" in ann.get("/admin/").text
    Delivery.objects.filter(message=answer).update(
        skipped=True, next_attempt_at=timezone.now(), attempts=1
    )
    lane = read_callback_lane()
    assert (lane.waiting.found, lane.failed.found) == (1, 1)
    assert lane.next_at is not None
    assert lane.oldest_at == Message.objects.get(pk=answer).published_at
    text = Client().get("/metrics").text
    assert "inturn_callback_lane_deliveries 1.0" in text
    assert "inturn_callback_lane_failed_deliveries 1.0" in text


def test_an_expired_callback_is_shown_as_expired(ann: Client, callback: Callback) -> None:
    Callback.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert "EXPIRED" in page(ann, callback.message_id)


def test_a_message_of_a_chain_shows_its_hop(ann: Client, callback: Callback) -> None:
    answer = answered(callback, callbackurl="https://worker.example/")
    assert "callback 2 of a chain" in page(ann, answer)
    assert "of a chain" not in page(ann, callback.message_id)


def test_the_delivery_of_an_answer_shows_where_it_goes(ann: Client, callback: Callback) -> None:
    delivery = Delivery.objects.get(message_id=answered(callback))
    shown = ann.get(f"/admin/delivery/delivery/{delivery.pk}/change/").text
    assert callback.url in shown
    assert callbacks.NO_ENDPOINT not in shown


def test_a_callbacks_url_is_shown_only_with_the_right_to_see_payloads(
    reader: Client, callback: Callback
) -> None:
    delivery = Delivery.objects.get(message_id=answered(callback))
    factories.attempt(delivery)
    pages = (
        f"message/{callback.message_id}",
        f"message/{delivery.message_id}",
        f"delivery/{delivery.pk}",
    )

    def shown() -> list[bool]:
        return [
            "publisher.example" in reader.get(f"/admin/delivery/{page}/change/").text
            for page in pages
        ]

    assert shown() == [True, True, True]
    ray = User.objects.get(username="ray")
    ray.user_permissions.remove(Permission.objects.get(codename="view_payload"))
    assert shown() == [False, False, False]


def test_no_page_shows_a_token(ann: Client, callback: Callback) -> None:
    answer = answered(callback, callbackurl="https://worker.example/")
    key = callback_key(settings.SECRET_KEY)
    for kept_callback in Callback.objects.all():
        for message_id in (callback.message_id, answer):
            assert make_token(kept_callback.pk, key=key) not in page(ann, message_id)


def test_a_topic_message_has_no_callback(ann: Client) -> None:
    message = factories.message(headers={"callbackurl": URL})
    assert "Callbacks" not in page(ann, message.pk)
