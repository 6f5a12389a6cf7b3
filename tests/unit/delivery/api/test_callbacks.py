"""Answering a callback over HTTP: by token, without a key, once."""

from collections.abc import Mapping
from datetime import timedelta

import pytest
from django.conf import settings
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from delivery.api import callbacks as view
from delivery.models import Callback, Delivery, Message
from delivery.publishing.callback_tokens import callback_key, make_token
from subscriptions.models import EventType, Kind
from tests.support import factories
from tests.unit.delivery.api.client import ApiAnswer, Caller, caller, refused

EVENT = "Report.Wanted"
URL = "https://publisher.example/answers"


@pytest.fixture(autouse=True)
def event_type(db: None) -> EventType:
    event_type = factories.event_type(EVENT, kind=Kind.QUEUE)
    factories.subscription(event_type=event_type)
    view._bucket.cache_clear()
    return event_type


@pytest.fixture
def anonymous() -> Caller:
    return Caller(None)


@pytest.fixture
def callback(publishing: Caller) -> Callback:
    id = publishing.publish(EVENT, CallbackURL=URL).body["id"]
    return Callback.objects.get(message_id=int(id.removeprefix("msg_")))


def address(callback: Callback) -> str:
    return f"/callbacks/{make_token(callback.pk, key=callback_key(settings.SECRET_KEY))}"


def post(
    by: Caller, callback: Callback, body: bytes = b"{}", headers: Mapping[str, str] | None = None
) -> ApiAnswer:
    return by.ask("POST", address(callback), body, headers=headers)


def test_an_answer_needs_no_key(anonymous: Caller, callback: Callback) -> None:
    answer = post(anonymous, callback, b'{"rows": 5}')
    assert answer.status == 202
    message = Message.objects.get(event_type__name="Inturn.Callback")
    assert answer.body == {"id": message.public_id, "deliveries": 1}
    assert (bytes(message.body), message.content_type) == (b'{"rows": 5}', "application/json")


def test_an_answer_need_not_be_json(anonymous: Caller, callback: Callback) -> None:
    assert post(anonymous, callback, b"\xff{").status == 202
    assert bytes(Message.objects.get(event_type__name="Inturn.Callback").body) == b"\xff{"


def test_a_form_of_another_site_needs_no_csrf_token(callback: Callback) -> None:
    client = Client(enforce_csrf_checks=True)
    assert client.post(address(callback), b"x", content_type="text/plain").status_code == 202


def test_headers_are_stored_as_of_a_message(anonymous: Caller, callback: Callback) -> None:
    post(
        anonymous,
        callback,
        headers={"authorization": "Bearer s3cret", "cookie": "a=b", "x-trace": "7"},
    )
    message = Message.objects.get(event_type__name="Inturn.Callback")
    assert message.headers == {"content-type": "application/json", "x-trace": "7"}


def test_the_same_again_is_202_and_another_409(anonymous: Caller, callback: Callback) -> None:
    first = post(anonymous, callback)
    assert post(anonymous, callback).body == first.body
    refused(post(anonymous, callback, b"[]"), 409, "answered-already")
    assert Delivery.objects.filter(callback=callback).count() == 1


@pytest.mark.parametrize("token", ["x", "1.AAAAAAAAAAAAAAAAAAAAAAAA", "%F0%9F%98%80", "1.%00"])
def test_a_forged_token_is_404_without_a_query(
    anonymous: Caller, django_assert_num_queries: DjangoAssertNumQueries, token: str
) -> None:
    with django_assert_num_queries(0):
        refused(anonymous.ask("POST", f"/callbacks/{token}", b"{}"), 404, "no-such-callback")


def test_the_token_of_one_callback_with_the_id_of_another_is_404(
    anonymous: Caller, callback: Callback
) -> None:
    _, _, code = address(callback).rpartition(".")
    refused(anonymous.ask("POST", f"/callbacks/{callback.pk + 1}.{code}", b"{}"), 404)


def test_a_removed_callback_is_404(anonymous: Caller, callback: Callback) -> None:
    token = make_token(callback.pk + 1, key=callback_key(settings.SECRET_KEY))
    refused(anonymous.ask("POST", f"/callbacks/{token}", b"{}"), 404, "no-such-callback")


def test_an_expired_one_is_410(anonymous: Caller, callback: Callback) -> None:
    Callback.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    refused(post(anonymous, callback), 410, "expired")
    assert not Delivery.objects.filter(callback=callback).exists()


def test_a_body_over_the_limit_is_413(anonymous: Caller, callback: Callback) -> None:
    refused(
        post(anonymous, callback, b"x" * (settings.ENVIRONMENT.max_message_bytes + 1)),
        413,
        "too-large",
    )


def test_a_next_url_is_guarded(anonymous: Caller, callback: Callback) -> None:
    for url in ("http://10.0.0.1/", "PATCH:https://publisher.example/"):
        refused(post(anonymous, callback, headers={"CallbackURL": url}), 400, "callback-refused")
    assert not Delivery.objects.filter(callback=callback).exists()


def test_repeated_posts_are_rate_limited(anonymous: Caller, callback: Callback) -> None:
    assert {post(anonymous, callback).status for _ in range(view.POSTS)} == {202}
    answer = post(anonymous, callback)
    refused(answer, 429, "too-fast")
    assert 1 <= int(answer.headers["Retry-After"]) <= view.SECONDS


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "PATCH"])
def test_a_callback_accepts_only_post(anonymous: Caller, callback: Callback, method: str) -> None:
    refused(anonymous.ask(method, address(callback), b"{}"), 405)


class TestPublishingOverTheApi:
    def test_a_url_that_cannot_be_called_is_400_with_the_reason(self, publishing: Caller) -> None:
        problem = refused(
            publishing.publish(EVENT, CallbackURL="http://10.1.2.3/"), 400, "callback-refused"
        )
        assert "10.0.0.0/8" in problem["detail"]
        assert not Message.objects.exists()

    def test_an_item_of_a_batch_may_want_an_answer(self, publishing: Caller) -> None:
        items = [
            {"event": EVENT, "body": {}, "headers": {"CallbackURL": URL}},
            {"event": EVENT, "body": {}, "headers": {"callbackurl": "http://10.1.2.3/"}},
        ]
        problem = refused(publishing.post("messages:batch", items), 400, "callback-refused")
        assert problem["index"] == 1
        answer = publishing.post("messages:batch?partial=true", items)
        assert [set(result) for result in answer.body["results"]] == [
            {"id", "deliveries"},
            {"error"},
        ]
        assert Callback.objects.get().url == URL


class TestHistory:
    def test_a_message_lists_its_callbacks_and_an_answer_its_message(
        self, manager: Caller, anonymous: Caller, callback: Callback
    ) -> None:
        id = f"messages/msg_{callback.message_id}"
        (waiting,) = manager.get(id).body["callbacks"]
        assert waiting["state"] == "WAITING"
        assert (waiting["queue_group"], waiting["url"], waiting["hop"]) == (0, URL, 1)
        assert (waiting["answered_at"], waiting["answer"]) == (None, None)
        answer = post(anonymous, callback).body["id"]
        (answered,) = manager.get(id).body["callbacks"]
        assert (answered["state"], answered["answer"]) == ("ANSWERED", answer)
        assert manager.get(id).body["answer_to"] is None
        assert manager.get(f"messages/{answer}").body["answer_to"] == f"msg_{callback.message_id}"

    def test_an_expired_callback_is_shown_as_expired(
        self, manager: Caller, callback: Callback
    ) -> None:
        Callback.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
        (shown,) = manager.get(f"messages/msg_{callback.message_id}").body["callbacks"]
        assert shown["state"] == "EXPIRED"

    def test_no_response_contains_a_token(
        self, manager: Caller, anonymous: Caller, callback: Callback
    ) -> None:
        answer = post(anonymous, callback, headers={"CallbackURL": URL}).body["id"]
        for path in (f"messages/msg_{callback.message_id}", f"messages/{answer}", "deliveries"):
            assert b"/callbacks/" not in manager.get(path).content

    def test_another_publisher_does_not_see_them(self, callback: Callback) -> None:
        from subscriptions.models import Scope

        refused(caller(Scope.PUBLISH).get(f"messages/msg_{callback.message_id}"), 404)
