"""Replying to a delivered message at its URL, without a key, once."""

import pytest
from django.conf import settings
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from delivery.api import replies as view
from delivery.models import Delivery, JournalEntry, Replay, Reply, Status
from delivery.publishing.callback_tokens import callback_key, make_token
from subscriptions.models import EventType, Kind, Publisher
from tests.support import factories
from tests.unit.delivery.api import replying
from tests.unit.delivery.api.client import Caller, refused
from tests.unit.delivery.api.replying import EVENT, REPLY, post, published, the_reply


@pytest.fixture(autouse=True)
def _prepared(db: None) -> None:
    replying.prepare()


@pytest.fixture
def anonymous() -> Caller:
    return Caller(None)


@pytest.fixture
def sent(publishing: Caller) -> Delivery:
    return published(publishing)


class TestOneReply:
    def test_it_is_published_with_what_it_replies_to(
        self, anonymous: Caller, sent: Delivery
    ) -> None:
        wanting = factories.subscription(event_type=EventType.objects.get(name=REPLY))
        answer = post(anonymous, sent, headers={"FILTER_STRING": "p1", "x-trace": "7"})
        reply = the_reply()
        assert (answer.status, answer.body) == (202, {"id": reply.public_id, "deliveries": 1})
        assert (bytes(reply.body), reply.content_type) == (b'{"price": 5}', "application/json")
        assert reply.headers == {
            "content-type": "application/json",
            "filter-string": "p1",
            "x-trace": "7",
            "inturn-replied-message": sent.message.public_id,
            "inturn-replied-delivery": str(sent.pk),
            "inturn-replied-subscriber": "insurer",
            "inturn-replied-subscription": "quotes",
        }
        assert reply.publisher is None
        assert reply.deliveries.get().subscription == wanting

    def test_the_same_again_is_the_first_answer_and_another_409(
        self, anonymous: Caller, sent: Delivery
    ) -> None:
        factories.subscription(event_type=EventType.objects.get(name=REPLY))
        first = post(anonymous, sent)
        # The answer is that of then, whoever wants replies now.
        factories.subscription(event_type=EventType.objects.get(name=REPLY))
        again = post(anonymous, sent)
        assert (again.status, again.body) == (202, first.body)
        problem = refused(post(anonymous, sent, b"{}"), 409, "replied-already")
        assert first.body["id"] in problem["detail"]
        assert Delivery.objects.filter(message=the_reply()).count() == 1

    def test_a_repetition_is_answered_though_replies_are_possible_no_more(
        self, anonymous: Caller, sent: Delivery, publisher: Publisher
    ) -> None:
        first = post(anonymous, sent)
        Publisher.objects.update(all_event_types=False)
        assert post(anonymous, sent).body == first.body

    def test_it_needs_no_recorded_attempt(self, anonymous: Caller, sent: Delivery) -> None:
        assert (sent.status, sent.attempts) == (Status.PENDING, 0)
        assert post(anonymous, sent).status == 202

    @pytest.mark.parametrize(
        "status", [Status.DELIVERED, Status.IN_DOUBT, Status.FAILED, Status.CANCELLED]
    )
    def test_it_counts_whatever_became_of_the_delivery(
        self, anonymous: Caller, sent: Delivery, status: Status
    ) -> None:
        factories.settle(sent, status)
        first = post(anonymous, sent)
        assert first.status == 202
        assert the_reply().headers["inturn-replied-delivery"] == str(sent.pk)

    def test_a_resubmitted_delivery_has_the_reply_that_it_had(
        self, anonymous: Caller, manager: Caller, sent: Delivery
    ) -> None:
        factories.settle(sent, Status.FAILED)
        first = post(anonymous, sent)
        assert manager.post(f"deliveries/{sent.pk}/resubmit").status == 200
        assert post(anonymous, sent).body == first.body
        refused(post(anonymous, sent, b"[]"), 409, "replied-already")

    def test_an_edited_copy_has_a_reply_of_its_own(
        self, anonymous: Caller, manager: Caller, sent: Delivery
    ) -> None:
        factories.settle(sent, Status.REJECTED)
        answer = manager.post(f"deliveries/{sent.pk}/resubmit", {"body": {"n": 2}})
        copy = Delivery.objects.get(pk=answer.body["delivery"])
        ids = {post(anonymous, body).body["id"] for body in (sent, copy)}
        assert len(ids) == 2

    def test_nobody_wants_it_is_in_the_journal(self, anonymous: Caller, sent: Delivery) -> None:
        id = post(anonymous, sent).body["id"]
        entry = JournalEntry.objects.get(message_id=the_reply().pk)
        assert entry.kind == "UNMATCHED"
        assert f"{id}, the reply to delivery {sent.pk}" in entry.text

    def test_the_endpoints_of_a_group_have_one_reply_together(
        self, anonymous: Caller, publishing: Caller
    ) -> None:
        queue = factories.event_type("Work.Wanted", kind=Kind.QUEUE)
        for text in ("", "", "$$->'Body'->'n' is null"):
            factories.subscription(event_type=queue, filter=text)
        publishing.publish("Work.Wanted", ReplyTo=REPLY)
        first_delivery, second_delivery, other = Delivery.objects.filter(
            message__event_type=queue
        ).order_by("id")
        assert first_delivery.queue_group == second_delivery.queue_group != other.queue_group
        first = post(anonymous, first_delivery)
        assert post(anonymous, second_delivery).body == first.body
        assert "another endpoint" in refused(post(anonymous, second_delivery, b"{}"), 409)["detail"]
        assert post(anonymous, other).body != first.body


class TestRefusals:
    @pytest.mark.parametrize("token", ["x", "1.AAAAAAAAAAAAAAAAAAAAAAAA", "%F0%9F%98%80", "1.%00"])
    def test_a_forged_token_is_404_without_a_query(
        self, anonymous: Caller, django_assert_num_queries: DjangoAssertNumQueries, token: str
    ) -> None:
        with django_assert_num_queries(0):
            refused(anonymous.ask("POST", f"/replies/{token}", b"{}"), 404, "no-such-reply")

    def test_a_callbacks_token_is_none_of_a_reply(self, anonymous: Caller, sent: Delivery) -> None:
        token = make_token(sent.pk, key=callback_key(settings.SECRET_KEY))
        refused(anonymous.ask("POST", f"/replies/{token}", b"{}"), 404, "no-such-reply")

    def test_a_removed_message_is_410_with_advice(self, anonymous: Caller, sent: Delivery) -> None:
        Delivery.objects.all().delete()
        problem = refused(post(anonymous, sent), 410, "removed")
        assert "Publish a message of your own" in problem["detail"]

    def test_a_replay_wants_no_reply(self, anonymous: Caller, sent: Delivery) -> None:
        hours = {"since": sent.message.published_at, "until": timezone.now()}
        replay = Replay.objects.create(subscription=sent.subscription, **hours)
        Delivery.objects.filter(pk=sent.pk).update(replay=replay)
        problem = refused(post(anonymous, sent), 409, "no-reply-wanted")
        assert "replay" in problem["detail"]

    def test_a_message_without_reply_to_wants_none(
        self, anonymous: Caller, publishing: Caller
    ) -> None:
        publishing.publish(EVENT)
        refused(post(anonymous, Delivery.objects.get()), 409, "no-reply-wanted")

    def test_the_body_has_to_fit_the_event_type(self, anonymous: Caller, sent: Delivery) -> None:
        EventType.objects.filter(name=REPLY).update(json_schema={"required": ["price"]})
        refused(post(anonymous, sent, b"{"), 400, "not-json")
        refused(post(anonymous, sent, b"{}"), 422, "schema-violation")
        assert not Reply.objects.exists()
        assert post(anonymous, sent).status == 202

    def test_a_body_over_the_limit_is_413(self, anonymous: Caller, sent: Delivery) -> None:
        body = b'"%s"' % (b"x" * settings.ENVIRONMENT.max_message_bytes)
        refused(post(anonymous, sent, body), 413, "too-large")

    def test_posts_are_limited(self, anonymous: Caller, sent: Delivery) -> None:
        assert {post(anonymous, sent).status for _ in range(view.POSTS)} == {202}
        refused(post(anonymous, sent), 429, "too-fast")

    def test_a_right_taken_back_counts(
        self, anonymous: Caller, sent: Delivery, publisher: Publisher
    ) -> None:
        Publisher.objects.filter(pk=publisher.pk).update(all_event_types=False)
        refused(post(anonymous, sent), 403, "not-allowed")
        assert not Reply.objects.exists()

    def test_a_deleted_event_type_is_named(self, anonymous: Caller, sent: Delivery) -> None:
        EventType.objects.get(name=REPLY).delete()
        assert REPLY in refused(post(anonymous, sent), 404, "no-such-reply-to")["detail"]
        factories.event_type(REPLY)
        assert post(anonymous, sent).status == 202

    def test_the_answer_to_a_callback_asks_for_no_reply(self, anonymous: Caller) -> None:
        answers = EventType.objects.filter(name="Inturn.Callback").first()
        message = factories.message(
            event_type=answers or factories.event_type("Inturn.Callback"),
            headers={"replyto": REPLY},
            publisher=None,
        )
        row = factories.delivery(message=message)
        refused(post(anonymous, row), 409, "no-reply-wanted")

    def test_a_header_that_nobody_checked_grants_nothing(self, anonymous: Caller) -> None:
        message = factories.message(headers={"replyto": REPLY}, publisher=None)
        refused(post(anonymous, factories.delivery(message=message)), 410, "removed")
        message = factories.message(headers={"replyto": "Inturn.Delivery.Failed"})
        refused(post(anonymous, factories.delivery(message=message)), 403, "reserved")


class TestReadingReplies:
    def test_message_and_reply_name_each_other(
        self, manager: Caller, publishing: Caller, anonymous: Caller, sent: Delivery
    ) -> None:
        id = f"messages/{sent.message.public_id}"
        before = manager.get(id).body
        assert (before["replies"], before["reply_to"]) == ([], None)
        reply = post(anonymous, sent).body["id"]
        for reader in (manager, publishing):
            (shown,) = reader.get(id).body["replies"]
            assert (shown["delivery"], shown["reply"]) == (sent.pk, reply)
        assert manager.get(f"messages/{reply}").body["reply_to"] == sent.message.public_id

    def test_no_response_contains_a_token(
        self, manager: Caller, anonymous: Caller, sent: Delivery
    ) -> None:
        reply = post(anonymous, sent).body["id"]
        for path in (f"messages/{sent.message.public_id}", f"messages/{reply}", "deliveries"):
            assert b"/replies/" not in manager.get(path).content
