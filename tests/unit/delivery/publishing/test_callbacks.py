"""Callbacks: stored with their message, answered exactly once, chained, and guarded."""

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from django.conf import settings
from django.db import connections
from django.utils import timezone

from delivery.models import Callback, Delivery, JournalEntry, JournalKind, LaneKind, Message, Status
from delivery.models.callback import MAX_HOPS
from delivery.publishing import callbacks
from delivery.publishing.callback_tokens import callback_key, callback_url, make_token
from delivery.publishing.callback_urls import CallbackRefusedError
from delivery.publishing.callbacks import CallbackAnswer
from delivery.publishing.drafts import Draft, PublishRefusedError
from delivery.publishing.publish import publish
from subscriptions.models import EventType, Kind, Subscription
from subscriptions.values import endpoints
from subscriptions.values.resolver import Resolver
from tests.support import factories
from tests.support.receivers.name_server import name_server

URL = "https://publisher.example/answers?job=1"
# A refused address in any network in which the tests run.
PRIVATE = "http://10.1.2.3/answers"


@pytest.fixture
def event_type(db: None) -> EventType:
    return factories.event_type(kind=Kind.QUEUE)


def draft(event_type: EventType, url: str | None = URL, body: bytes = b"{}") -> Draft:
    headers = {} if url is None else {"callbackurl": url}
    return Draft(event_type=event_type, headers=headers, body=body)


def published(event_type: EventType, url: str = URL) -> Callback:
    """Publish one message for one group; return its callback."""
    if not event_type.subscriptions.exists():
        factories.subscription(event_type=event_type)
    (accepted,) = publish(factories.publisher(), [draft(event_type, url)])
    return Callback.objects.get(message=accepted.message_id)


def posted(body: bytes = b"done", url: str | None = None) -> CallbackAnswer:
    headers = {"content-type": "text/plain"} | ({} if url is None else {"callbackurl": url})
    return CallbackAnswer(headers=headers, content_type="text/plain", body=body)


def answer(callback: Callback, given: CallbackAnswer, *, now: datetime | None = None) -> int:
    """Answer as the view does, with the current row."""
    return callbacks.answer_callback(
        Callback.objects.get(pk=callback.pk), given, now=now or timezone.now()
    )


class TestPublishing:
    def test_there_is_one_callback_for_each_group_of_the_message(
        self, event_type: EventType
    ) -> None:
        for text in ("", "", "$$->'Body'->>'n' is null"):
            factories.subscription(event_type=event_type, filter=text)
        (accepted,) = publish(factories.publisher(), [draft(event_type)])
        made = list(Callback.objects.filter(message=accepted.message_id).order_by("queue_group"))
        assert [(callback.queue_group, callback.url, callback.hop) for callback in made] == [
            (0, URL, 1),
            (1, URL, 1),
        ]

    def test_a_callback_can_be_answered_for_the_days_of_the_setting(
        self, event_type: EventType
    ) -> None:
        callback = published(event_type)
        assert callback.expires_at - callback.message.published_at == timedelta(days=4)

    def test_each_message_of_a_batch_has_its_own(self, event_type: EventType) -> None:
        factories.subscription(event_type=event_type)
        urls = ["https://a.example/1", None, "https://b.example/2"]
        accepted = publish(factories.publisher(), [draft(event_type, url) for url in urls])
        made = {callback.message_id: callback.url for callback in Callback.objects.all()}
        assert made == {accepted[0].message_id: urls[0], accepted[2].message_id: urls[2]}

    def test_a_message_without_subscription_cannot_be_answered(self, event_type: EventType) -> None:
        publish(factories.publisher(), [draft(event_type)])
        assert not Callback.objects.exists()

    def test_the_callback_header_of_a_topic_is_an_ordinary_header(self, db: None) -> None:
        topic = factories.event_type()
        factories.subscription(event_type=topic)
        publish(factories.publisher(), [draft(topic, "not a URL at all")])
        assert not Callback.objects.exists()
        assert Message.objects.get().headers == {"callbackurl": "not a URL at all"}

    @pytest.mark.parametrize(
        ("url", "words"),
        [
            ("", "begins with https"),
            ("PUT:https://publisher.example/", "without a method"),
            ("ftp://publisher.example/", "begins with https"),
            ("https://user:secret@publisher.example/", "without credentials"),
            ("https://publisher.example/#a", "Remove the #"),
            (PRIVATE, "10.0.0.0/8"),
            ("http://169.254.169.254/latest", "cloud metadata"),
            ("http://[::ffff:10.1.2.3]/", "10.0.0.0/8"),
            ("https://publisher.example/" + "é" * 700, "more than 2000 characters"),
        ],
    )
    def test_a_url_that_cannot_be_called_is_refused_at_once(
        self, event_type: EventType, url: str, words: str
    ) -> None:
        factories.subscription(event_type=event_type)
        with pytest.raises(PublishRefusedError, match=words) as refused:
            publish(factories.publisher(), [draft(event_type), draft(event_type, url)])
        assert (refused.value.status, refused.value.index) == (400, 1)
        assert not Message.objects.exists()

    def test_publishing_does_not_wait_for_the_name_servers_of_a_stranger(
        self, event_type: EventType, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        factories.subscription(event_type=event_type)
        with name_server({}) as names:
            monkeypatch.setattr(endpoints, "resolver", Resolver(servers=[names.address]))
            assert (
                published(event_type, "https://never-answered.test/").url
                == "https://never-answered.test/"
            )
            assert names.asked == []

    def test_a_repetition_by_idempotency_key_makes_no_second_callback(
        self, event_type: EventType
    ) -> None:
        factories.subscription(event_type=event_type)
        publisher = factories.publisher()
        keyed = replace(draft(event_type), idempotency_key="k")
        assert publish(publisher, [keyed]) == publish(publisher, [keyed])
        assert Callback.objects.count() == 1


class TestAnswering:
    def test_the_answer_is_a_message_on_its_way_to_the_url(self, event_type: EventType) -> None:
        callback = published(event_type)
        message_id = answer(callback, posted(b"\x00\xff"))
        callback.refresh_from_db()
        assert callback.answer_id == message_id
        assert callback.answered_at is not None
        message = Message.objects.select_related("event_type").get(pk=message_id)
        assert (bytes(message.body), message.content_type) == (b"\x00\xff", "text/plain")
        assert (message.event_type.name, message.publisher_id) == ("Inturn.Callback", None)
        delivery = Delivery.objects.select_related("lane", "subscription__policy").get(
            message=message
        )
        assert delivery.callback_id == callback.pk
        assert delivery.status == Status.PENDING
        assert delivery.lane is not None
        assert delivery.lane.kind == LaneKind.CALLBACK
        assert (str(delivery.subscription), str(delivery.subscription.policy)) == (
            "Inturn.Callbacks/callbacks",
            "teamforge",
        )
        assert not delivery.subscription.secrets.exists()

    def test_the_journal_records_an_answer(self, event_type: EventType) -> None:
        callback = published(event_type)
        message_id = answer(callback, posted())
        entry = JournalEntry.objects.get(kind=JournalKind.CALLBACK)
        assert entry.message_id == callback.message_id
        assert f"msg_{message_id}" in entry.text

    def test_a_repeated_answer_gets_the_first_result_and_stores_nothing(
        self, event_type: EventType
    ) -> None:
        callback = published(event_type)
        assert answer(callback, posted()) == answer(callback, posted())
        assert Delivery.objects.filter(callback=callback).count() == 1

    def test_another_answer_is_refused(self, event_type: EventType) -> None:
        callback = published(event_type)
        answer(callback, posted())
        refusal(callback, posted(b"something else"), status=409)
        assert Delivery.objects.filter(callback=callback).count() == 1

    def test_each_group_answers_for_itself(self, event_type: EventType) -> None:
        factories.subscription(event_type=event_type)
        factories.subscription(event_type=event_type, filter="$$->'Body'->>'n' is null")
        publish(factories.publisher(), [draft(event_type)])
        first, second = Callback.objects.order_by("queue_group")
        assert answer(first, posted()) != answer(second, posted())

    def test_an_expired_callback_cannot_be_answered(self, event_type: EventType) -> None:
        callback = published(event_type)
        Callback.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
        refusal(callback, posted(), status=410)
        # Nor if this machine's clock is behind: the database's counts.
        refusal(callback, posted(), status=410, now=timezone.now() - timedelta(days=30))
        assert not Delivery.objects.filter(callback=callback).exists()

    def test_an_answered_callback_does_not_expire(self, event_type: EventType) -> None:
        callback = published(event_type)
        message_id = answer(callback, posted())
        Callback.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
        assert answer(callback, posted()) == message_id
        refusal(callback, posted(b"other"), status=409)

    @pytest.mark.django_db(transaction=True)
    @pytest.mark.parametrize(
        "bodies", [[b"same"] * 8, [b"%d" % n for n in range(8)]], ids=["same", "other"]
    )
    def test_of_many_simultaneous_answers_one_is_stored(self, bodies: Sequence[bytes]) -> None:
        callback = published(factories.event_type(kind=Kind.QUEUE))
        together = threading.Barrier(len(bodies))

        def post(body: bytes) -> int:
            """Return the message's id, or the status of the refusal."""
            row = Callback.objects.get(pk=callback.pk)
            together.wait()
            try:
                return callbacks.answer_callback(row, posted(body), now=timezone.now())
            except CallbackRefusedError as refused:
                return refused.status
            finally:
                connections.close_all()

        with ThreadPoolExecutor(len(bodies)) as threads:
            answers = list(threads.map(post, bodies))
        (delivery,) = Delivery.objects.filter(callback=callback)
        winners = [
            body for body, got in zip(bodies, answers, strict=True) if got == delivery.message_id
        ]
        if len(set(bodies)) == 1:
            assert len(winners) == len(bodies)
        else:
            assert (len(winners), answers.count(409)) == (1, len(bodies) - 1)
        assert Message.objects.filter(event_type__name="Inturn.Callback").count() == 1
        # Created by the very first answer, and by several of them at once.
        assert Subscription.objects.filter(name="callbacks").count() == 1


class TestHops:
    def test_an_answer_that_wants_an_answer_brings_the_next_callback(
        self, event_type: EventType
    ) -> None:
        callback = published(event_type)
        message_id = answer(callback, posted(url="https://worker.example/more"))
        following = Callback.objects.get(message=message_id)
        assert (following.url, following.hop, following.queue_group) == (
            "https://worker.example/more",
            2,
            0,
        )
        assert following.expires_at > timezone.now() + timedelta(days=3)

    def test_a_chain_ends_after_ten_hops(self, event_type: EventType) -> None:
        callback = published(event_type)
        for hop in range(2, MAX_HOPS + 1):
            message_id = answer(callback, posted(url=URL))
            callback = Callback.objects.get(message=message_id)
            assert callback.hop == hop
        refusal(callback, posted(url=URL), status=400)
        callback.refresh_from_db()
        assert callback.answer_id is None
        # Without a request for an eleventh hop it can be answered.
        answer(callback, posted())

    def test_a_refused_address_stores_nothing(self, event_type: EventType) -> None:
        callback = published(event_type)
        refusal(callback, posted(url=PRIVATE), status=400)
        assert not Delivery.objects.filter(callback=callback).exists()

    def test_a_message_that_is_to_be_answered_to_our_own_callback_lengthens_the_chain(
        self, event_type: EventType
    ) -> None:
        callback = published(event_type)
        key = callback_key(settings.SECRET_KEY)
        for hop in range(2, MAX_HOPS + 1):
            callback = published(
                event_type, callback_url(callback.pk, base_url="https://us.example", key=key)
            )
            assert callback.hop == hop
        with pytest.raises(PublishRefusedError, match="More than 10"):
            published(event_type, callback_url(callback.pk, base_url="https://us.example", key=key))

    def test_a_url_that_only_looks_like_a_callback_of_ours_is_no_chain(
        self, event_type: EventType
    ) -> None:
        token = make_token(1, key=callback_key("of another installation"))
        assert published(event_type, f"https://other.example/callbacks/{token}").hop == 1


def refusal(
    callback: Callback, given: CallbackAnswer, *, status: int, now: datetime | None = None
) -> None:
    with pytest.raises(CallbackRefusedError) as refused:
        answer(callback, given, now=now)
    assert refused.value.status == status
