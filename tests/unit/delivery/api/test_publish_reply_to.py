"""The header `ReplyTo` of a message, the destination of replies, and replies from mailboxes."""

import pytest
from django.conf import settings

from delivery.models import Delivery, JournalEntry, Message
from subscriptions.models import EventType, Kind, Publisher, Scope, Subscription
from tests.support import factories
from tests.unit.delivery.api import replying
from tests.unit.delivery.api.client import Caller, caller, refused
from tests.unit.delivery.api.replying import EVENT, REPLY, post, published, the_reply
from tests.unit.delivery.mailbox.box import box


@pytest.fixture(autouse=True)
def _prepared(db: None) -> None:
    replying.prepare()


@pytest.fixture
def anonymous() -> Caller:
    return Caller(None)


@pytest.fixture
def sent(publishing: Caller) -> Delivery:
    return published(publishing)


class TestDestination:
    @pytest.fixture
    def shop(self) -> Subscription:
        """Create a subscription to replies beside one that must not get them."""
        event_type = EventType.objects.get(name=REPLY)
        factories.subscription(event_type=event_type)
        owner = factories.subscriber("web-shop")
        return factories.subscription("in", event_type=event_type, subscriber=owner)

    @pytest.mark.parametrize("to", ["web-shop", "web-shop/in", " web-shop "])
    def test_a_named_destination_gets_it_alone(
        self, anonymous: Caller, publishing: Caller, shop: Subscription, to: str
    ) -> None:
        sent = published(publishing, reply_to=f"{REPLY}; destination={to}")
        assert post(anonymous, sent).body["deliveries"] == 1
        assert the_reply().deliveries.get().subscription == shop
        assert the_reply().destination == to.strip()

    def test_a_destination_that_is_gone_publishes_to_nobody_else(
        self, anonymous: Caller, publishing: Caller, shop: Subscription
    ) -> None:
        sent = published(publishing, reply_to=f"{REPLY};Destination=web-shop/in")
        shop.delete()
        assert post(anonymous, sent).body["deliveries"] == 0
        assert not the_reply().deliveries.exists()
        assert (
            "delivered to web-shop/in" in JournalEntry.objects.get(message_id=the_reply().pk).text
        )

    def test_the_receiver_does_not_choose_it(
        self, anonymous: Caller, sent: Delivery, shop: Subscription
    ) -> None:
        control = {"Destination": "web-shop", "ErrorsTo": "-", "ReplyTo": EVENT}
        own = {"CallbackURL": "https://a.example/", "Idempotency-Key": "k"}
        assert post(anonymous, sent, headers=control | own).body["deliveries"] == 2
        assert not {name.lower() for name in control | own} & the_reply().headers.keys()


class TestReplyToAtPublication:
    @pytest.mark.parametrize(
        "reply_to", ["No.Such", "", "a b", f"{REPLY}; destination=nobody", "é"]
    )
    def test_an_unknown_name_is_refused_and_nothing_is_stored(
        self, publishing: Caller, reply_to: str
    ) -> None:
        refused(publishing.publish(EVENT, ReplyTo=reply_to), 404, "no-such-reply-to")
        assert not Message.objects.exists()

    @pytest.mark.parametrize("rest", ["; to=insurer", ";", "; destination=", "; insurer"])
    def test_another_form_is_refused(self, publishing: Caller, rest: str) -> None:
        refused(publishing.publish(EVENT, ReplyTo=f"{REPLY}{rest}"), 400, "reply-to-refused")

    def test_a_publisher_has_no_reply_published_that_it_may_not_publish(
        self, publishing: Caller, publisher: Publisher
    ) -> None:
        Publisher.objects.filter(pk=publisher.pk).update(all_event_types=False)
        publisher.event_types.add(EventType.objects.get(name=EVENT))
        refused(publishing.publish(EVENT, ReplyTo=REPLY), 403, "not-allowed")
        publisher.event_types.add(EventType.objects.get(name=REPLY))
        assert publishing.publish(EVENT, ReplyTo=REPLY).status == 202

    def test_sync_and_reserved_event_types_are_refused(self, publishing: Caller) -> None:
        sync = factories.event_type("Price.Now", kind=Kind.SYNC)
        for reply_to, status, code in (
            (sync.name, 400, "reply-to-refused"),
            ("Inturn.Delivery.Failed", 403, "reserved"),
        ):
            refused(publishing.publish(EVENT, ReplyTo=reply_to), status, code)
        refused(publishing.publish(sync.name, ReplyTo=REPLY), 400, "reply-to-refused")

    def test_each_item_of_a_batch_has_its_own(self, publishing: Caller) -> None:
        items = [
            {"event": EVENT, "body": 1, "headers": {"ReplyTo": name}} for name in (REPLY, "No.Such")
        ]
        problem = refused(publishing.post("messages:batch", items), 404, "no-such-reply-to")
        assert problem["index"] == 1
        results = publishing.post("messages:batch?partial=true", items).body["results"]
        assert [("error" in result) for result in results] == [False, True]

    def test_nobody_else_says_what_a_message_replies_to(self, publishing: Caller) -> None:
        publishing.publish(EVENT, Inturn_Replied_Message="msg_1", X_Other="1")
        assert Message.objects.get().headers.keys() == {"content-type", "x-other"}


class TestMailboxes:
    def test_a_client_replies_by_its_receipt_and_key(
        self, publishing: Caller, anonymous: Caller
    ) -> None:
        mailbox = box(event_type=EventType.objects.get(name=EVENT))
        publishing.publish(EVENT, ReplyTo=REPLY)
        message = mailbox.one()
        path = message["reply"].removeprefix(settings.ENVIRONMENT.base_url)
        assert path.startswith(f"/api/v1/mailboxes/{mailbox.subscriber.name}/reply?receipt=")
        refused(anonymous.ask("POST", path, b"{}"), 401)
        refused(caller(Scope.FETCH).ask("POST", path, b"{}"), 404)
        first = mailbox.client.ask("POST", path, b"{}")
        assert first.status == 202, first
        assert the_reply().headers["inturn-replied-subscriber"] == mailbox.subscriber.name
        assert mailbox.say("ack", message)
        assert mailbox.client.ask("POST", path, b"{}").body == first.body
        refused(mailbox.client.ask("POST", path, b"[]"), 409, "replied-already")

    def test_an_earlier_fetch_may_reply(self, publishing: Caller) -> None:
        mailbox = box(event_type=EventType.objects.get(name=EVENT))
        publishing.publish(EVENT, ReplyTo=REPLY)
        earlier = mailbox.one(visibility=0)
        assert mailbox.one()["receipt"] != earlier["receipt"]
        assert mailbox.client.ask("POST", earlier["reply"], b"{}").status == 202

    def test_a_receipt_of_another_mailbox_and_a_wrong_text_do_not_count(
        self, publishing: Caller
    ) -> None:
        mailbox, other = (box(event_type=EventType.objects.get(name=EVENT)) for _ in range(2))
        publishing.publish(EVENT, ReplyTo=REPLY)
        receipt = mailbox.one()["receipt"]
        for text in (receipt, "x"):
            path = f"mailboxes/{other.subscriber.name}/reply?receipt={text}"
            refused(other.client.post(path, {}), 409, "receipt-does-not-count")
        refused(other.client.post(f"mailboxes/{other.subscriber.name}/reply", {}), 400)

    def test_a_message_without_reply_to_has_no_address(self, publishing: Caller) -> None:
        mailbox = box(event_type=EventType.objects.get(name=EVENT))
        publishing.publish(EVENT, X_Word='"replyto"')
        message = mailbox.one()
        assert message["reply"] is None
        path = f"mailboxes/{mailbox.subscriber.name}/reply?receipt={message['receipt']}"
        refused(mailbox.client.post(path, {}), 409, "no-reply-wanted")
