"""The Event Queue's own calls: addresses, links, answers and rights."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from delivery.models import Status
from subscriptions.models import ConfigurationChange, Scope, SignIn
from subscriptions.sign_in import MOST_OF_ACCOUNT_FROM_ORIGIN
from tests.support import factories
from tests.unit.delivery.api.client import Caller, caller, created, fields_of, refused
from tests.unit.delivery.mailbox.box import FilledMailbox, box, end_visibility, move, status_of
from tests.unit.delivery.vendors.queue_client import NEXT, VENDOR_JSON, QueueClient

PASSWORD = "hunter2 hunter2"


@pytest.fixture
def mailbox(db: None) -> FilledMailbox:
    return box(factories.subscriber("crm", queue_id="q-17"))


@pytest.fixture
def queue(mailbox: FilledMailbox) -> QueueClient:
    _, key = factories.api_key(Scope.FETCH, subscriber=mailbox.subscriber)
    return QueueClient("crm", key)


class TestSequence:
    def test_a_client_that_follows_links_empties_its_queue(
        self, mailbox: FilledMailbox, queue: QueueClient
    ) -> None:
        message = factories.message(b'{"eventName": "user.UserAnnounce", "n": 1.10}')
        (delivery,) = mailbox.put(message=message)
        answer = queue.ask("POST", NEXT)
        assert (answer.status, answer.content_type) == (200, VENDOR_JSON)
        assert answer.headers["Cache-Control"] == "no-store"
        assert b'"event":{"eventName": "user.UserAnnounce", "n": 1.10}' in answer.content
        assert answer.body["messageId"] == message.public_id
        assert answer.body["link"] == [
            {"rel": "ack", "href": f"ack?receiptId={answer.body['receiptId']}"},
        ]
        acknowledged = queue.ack(answer.body)
        assert (acknowledged.status, acknowledged.content) == (200, b"{}")
        assert status_of(delivery) == Status.DELIVERED
        empty = queue.ask("POST", NEXT)
        assert (empty.status, empty.content, empty.content_type) == (204, b"", "")

    def test_what_is_not_acknowledged_comes_back_with_another_receipt(
        self, mailbox: FilledMailbox, queue: QueueClient
    ) -> None:
        (delivery,) = mailbox.put()
        first = queue.next()
        assert queue.ask("POST", NEXT).status == 204
        out_for = mailbox.status()
        assert (out_for["available"], out_for["in_flight"]) == (0, 1)
        end_visibility(delivery)
        second = queue.next()
        assert second["messageId"] == first["messageId"]
        assert second["receiptId"] != first["receiptId"]

    def test_a_message_is_out_for_thirty_seconds(
        self, mailbox: FilledMailbox, queue: QueueClient
    ) -> None:
        (delivery,) = mailbox.put()
        before = timezone.now()
        queue.next()
        delivery.refresh_from_db()
        assert delivery.lease_expires_at is not None
        seconds = (delivery.lease_expires_at - before).total_seconds()
        assert seconds == pytest.approx(30, abs=5)

    def test_next_works_by_get_and_nothing_is_fetched_by_head(
        self, mailbox: FilledMailbox, queue: QueueClient
    ) -> None:
        mailbox.put()
        assert queue.ask("HEAD", NEXT, b"").status == 405
        assert queue.ask("GET", NEXT, b"").status == 200

    @pytest.mark.parametrize("accept", ["application/json", "*/*", ""])
    def test_plain_json_is_answered_unless_the_old_type_is_asked_for(
        self, mailbox: FilledMailbox, queue: QueueClient, accept: str
    ) -> None:
        mailbox.put()
        assert (
            queue.ask("POST", NEXT, headers={"accept": accept}).content_type == "application/json"
        )

    def test_a_body_that_is_no_json_is_base64(
        self, mailbox: FilledMailbox, queue: QueueClient
    ) -> None:
        mailbox.put(message=factories.message(b"\x00\xff", content_type="application/octet-stream"))
        assert queue.next()["event"] == {"body_base64": "AP8="}

    def test_the_name_of_the_subscriber_is_a_queue_id_as_well(
        self, mailbox: FilledMailbox, queue: QueueClient
    ) -> None:
        mailbox.put()
        assert queue.ask("POST", "/event/queue/crm/next").status == 200

    def test_status_shows_how_full_the_queue_is(
        self, mailbox: FilledMailbox, queue: QueueClient
    ) -> None:
        nothing = {"available": 0, "inFlight": 0, "oldestSeconds": None}
        assert queue.ask("GET", "/event/queue/q-17/status").body == nothing
        message = factories.message(published_at=timezone.now() - timedelta(minutes=1))
        mailbox.put(message=message)
        mailbox.put()
        queue.next()
        figures = queue.ask("GET", "/event/queue/q-17/status").body
        assert (figures["available"], figures["inFlight"]) == (1, 1)
        assert figures["oldestSeconds"] >= 60

    def test_a_mailbox_without_subscriptions_is_empty(self, db: None) -> None:
        owner = factories.subscriber("empty", queue_id="q-17")
        queue = QueueClient("empty", factories.api_key(Scope.FETCH, subscriber=owner)[1])
        assert queue.ask("GET", "/event/queue/q-17/status").body["available"] == 0
        assert queue.ask("POST", NEXT).status == 204


class TestReceipts:
    def test_repeating_an_acknowledgement_is_well(
        self, mailbox: FilledMailbox, queue: QueueClient
    ) -> None:
        mailbox.put()
        message = queue.next()
        assert [queue.ack(message).status for _ in range(2)] == [200, 200]

    def test_a_late_one_counts_unless_it_was_fetched_since(
        self, mailbox: FilledMailbox, queue: QueueClient
    ) -> None:
        (delivery,) = mailbox.put()
        first = queue.next()
        end_visibility(delivery)
        second = queue.next()
        refused(queue.ack(first), 409, "receipt-does-not-count")
        end_visibility(delivery)
        assert queue.ack(second).status == 200

    def test_what_expired_since_says_so(self, mailbox: FilledMailbox, queue: QueueClient) -> None:
        (delivery,) = mailbox.put()
        message = queue.next()
        move(delivery, lease_expires_at=-timedelta(seconds=1))
        factories.settle(delivery, Status.EXPIRED)
        assert "EXPIRED" in refused(queue.ack(message), 409)["detail"]

    @pytest.mark.parametrize("receipt", ["nonsense", "_gEAAAAA", "%00", "%C3%A9"])
    def test_what_is_no_receipt_is_not_there(self, queue: QueueClient, receipt: str) -> None:
        answer = queue.ask("POST", f"/event/queue/q-17/ack?receiptId={receipt}")
        assert answer.status in ({404} if receipt != "%00" else {400, 404}), answer

    def test_an_acknowledgement_without_a_receipt_is_refused(self, queue: QueueClient) -> None:
        assert fields_of(refused(queue.ask("POST", "/event/queue/q-17/ack"), 400)) == {"receiptId"}

    def test_both_addresses_serve_one_mailbox_and_take_each_others_receipts(
        self, mailbox: FilledMailbox, queue: QueueClient
    ) -> None:
        first, second = mailbox.put(2)
        of_queue = queue.next()
        of_api = mailbox.one()
        assert {of_queue["messageId"], of_api["id"]} == {
            first.message.public_id,
            second.message.public_id,
        }
        assert mailbox.say("ack", {"receipt": of_queue["receiptId"]})
        acknowledged = queue.ask("POST", f"/event/queue/q-17/ack?receiptId={of_api['receipt']}")
        assert acknowledged.status == 200
        assert {status_of(first), status_of(second)} == {Status.DELIVERED}


class TestSigningIn:
    def test_a_foreign_queue_is_not_there(self, queue: QueueClient) -> None:
        box(factories.subscriber("other", queue_id="q-18"))
        for name in ["q-18", "other", "nobody"]:
            for method, verb in [("POST", "next"), ("POST", "ack?receiptId=x"), ("GET", "status")]:
                refused(queue.ask(method, f"/event/queue/{name}/{verb}"), 404, "no-such-queue")

    def test_bearer_works_as_well(self, mailbox: FilledMailbox) -> None:
        mailbox.put()
        assert mailbox.client.ask("POST", NEXT).status == 200

    def test_other_scopes_are_refused(self, mailbox: FilledMailbox) -> None:
        refused(caller().ask("POST", NEXT), 403, "wrong-scope")

    def test_who_sends_nothing_is_asked_for_basic_credentials(self, mailbox: FilledMailbox) -> None:
        answer = Caller(None).ask("POST", NEXT)
        refused(answer, 401)
        assert answer.headers["WWW-Authenticate"].startswith("Basic realm=")

    @pytest.mark.parametrize(
        "given", ["Basic", "Basic !!!", "Basic Y3Jt", "Basic Y3JtOg==", "Basic /w==", "Digest x"]
    )
    def test_broken_credentials_are_refused(self, mailbox: FilledMailbox, given: str) -> None:
        refused(Caller(None).ask("POST", NEXT, headers={"authorization": given}), 401)

    def test_a_key_of_another_subscriber_does_not_fit_the_name(
        self, mailbox: FilledMailbox
    ) -> None:
        _, foreign = factories.api_key(Scope.FETCH)
        refused(QueueClient("crm", foreign).ask("POST", NEXT), 401)

    def test_a_revoked_key_is_refused(self, mailbox: FilledMailbox) -> None:
        _, key = factories.api_key(
            Scope.FETCH, subscriber=mailbox.subscriber, revoked_at=timezone.now()
        )
        refused(QueueClient("crm", key).ask("POST", NEXT), 401)

    def test_an_imported_password_works_is_hashed_and_shown_nowhere(self, db: None) -> None:
        manager = caller()
        given = {"name": "crm", "queue_id": "q-17", "queue_password": PASSWORD}
        made = manager.post("subscribers", given)
        assert created(made)["queue_id"] == "q-17"
        assert PASSWORD.encode() not in made.content + manager.get("subscribers/crm").content
        change = ConfigurationChange.objects.latest("id")
        assert PASSWORD not in str((change.before, change.after))
        assert QueueClient("crm", PASSWORD).ask("POST", NEXT).status == 204
        assert QueueClient("crm", PASSWORD + "!").ask("POST", NEXT).status == 401
        assert manager.patch("subscribers/crm", {"queue_password": ""}).status == 200
        assert QueueClient("crm", PASSWORD).ask("POST", NEXT).status == 401

    def test_a_password_that_was_right_is_not_looked_at_for_each_call(self, db: None) -> None:
        caller().post(
            "subscribers", {"name": "crm", "queue_id": "q-17", "queue_password": PASSWORD}
        )
        client = QueueClient("crm", PASSWORD)
        assert [client.ask("POST", NEXT).status for _ in range(3)] == [204] * 3
        assert list(SignIn.objects.values_list("kind", "username")) == [
            ("SIGNED_IN", "event queue crm")
        ]

    def test_wrong_passwords_are_throttled_and_a_fetch_key_is_let_in(
        self, queue: QueueClient
    ) -> None:
        guesser = QueueClient("crm", "guess")
        for _ in range(MOST_OF_ACCOUNT_FROM_ORIGIN):
            refused(guesser.ask("POST", NEXT), 401)
        answer = guesser.ask("POST", NEXT)
        refused(answer, 429, "too-many-failures")
        assert int(answer.headers["Retry-After"]) > 0
        assert queue.ask("POST", NEXT).status == 204

    def test_a_name_that_nobody_has_is_answered_like_any_other(
        self, mailbox: FilledMailbox
    ) -> None:
        details = {
            refused(QueueClient(name, "guess").ask("POST", NEXT), 401)["detail"]
            for name in ("crm", "nobody")
        }
        assert len(details) == 1
        assert list(SignIn.objects.order_by("id").values_list("username", flat=True)) == [
            "event queue crm",
            "",
        ]


class TestQueueIds:
    @pytest.mark.parametrize("queue_id", ["a/b", "a b", "ü", "-x", "x" * 201, 7])
    def test_what_cannot_stand_in_an_address_is_refused(self, db: None, queue_id: Any) -> None:
        answer = caller().post("subscribers", {"name": "crm", "queue_id": queue_id})
        assert fields_of(refused(answer, 400)) == {"queue_id"}

    def test_a_queue_id_has_one_subscriber(self, mailbox: FilledMailbox) -> None:
        manager = caller()
        answer = manager.post("subscribers", {"name": "other", "queue_id": "q-17"})
        assert "queue id" in refused(answer, 409, "in-use-elsewhere")["detail"]
        created(manager.post("subscribers", {"name": "third"}))
        refused(manager.patch("subscribers/third", {"queue_id": "q-17"}), 409, "in-use-elsewhere")
        created(manager.post("subscribers", {"name": "fourth"}))
