"""The recipients of failures: all subscribers, one that message or publisher names, or none."""

from typing import Any

import orjson
import pytest
from django.db import transaction

from delivery.models import Delivery, FailureNotice, JournalEntry, Message
from delivery.publishing import failures
from subscriptions.models import EventType, Mode, Publisher, Scope, Subscription
from tests.support import factories
from tests.unit.delivery.api.client import Caller, caller, created, fields_of, refused
from tests.unit.delivery.publishing.test_failures import (
    event_type,
    failed,
    listening,
    report,
    reported,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def ops() -> Subscription:
    """The subscription of `ops` to failures."""
    return listening(subscriber=factories.subscriber("ops"), name="mail", mode=Mode.PULL)


def failure_of(
    errors_to: str | None = None, *, publisher: Publisher | None = None, **fields: Any
) -> Delivery:
    headers = {} if errors_to is None else {"errorsto": errors_to}
    message = factories.message(
        headers=headers, publisher=publisher or factories.publisher(), **fields
    )
    return failed(
        message=message, subscription=factories.subscription(event_type=message.event_type)
    )


def notified_subscriptions() -> set[int]:
    """Return the subscriptions that got a failure message."""
    reports = Message.objects.filter(event_type=event_type())
    return {
        delivery.subscription_id for message in reports for delivery in message.deliveries.all()
    }


class TestBody:
    def test_it_says_who_published_what_when_and_for_whom(self) -> None:
        row = failure_of(destination="crm/all", publisher=factories.publisher("teamforge"))
        Delivery.objects.filter(pk=row.pk).update(redelivery="resubmitted")
        report()
        (body,) = reported()
        given = {
            name: body[name] for name in ("publisher", "destination", "published_at", "redelivery")
        }
        assert given == {
            "publisher": "teamforge",
            "destination": "crm/all",
            "published_at": f"{row.message.published_at:%Y-%m-%dT%H:%M:%S.%f}Z",
            "redelivery": "resubmitted",
        }
        assert Message.objects.get(event_type=event_type()).headers["publisher"] == "teamforge"

    def test_each_publisher_gets_its_own_by_its_header(self) -> None:
        for name in ("first", "second"):
            listening(name=name, filter=f"$$->'Header'->>'Publisher' = '{name}'")
            failure_of(publisher=factories.publisher(name))
        report()
        messages = Message.objects.filter(event_type=event_type())
        got = {
            (m.headers["publisher"], d.subscription.name)
            for m in messages
            for d in m.deliveries.all()
        }
        assert got == {("first", "first"), ("second", "second")}

    def test_an_edited_copy_belongs_to_who_published_the_original(self, ops: Subscription) -> None:
        publisher = factories.publisher("teamforge", errors_to="ops")
        original = factories.message(publisher=publisher)
        copy = factories.message(
            publisher=None, edited_from=original, event_type=original.event_type
        )
        again = factories.message(publisher=None, edited_from=copy, event_type=original.event_type)
        failed(message=again)
        report()
        assert ([body["publisher"] for body in reported()], notified_subscriptions()) == (
            ["teamforge"],
            {ops.pk},
        )


class TestWhom:
    def test_the_named_subscriber_is_notified_and_nobody_else(self, ops: Subscription) -> None:
        listening()
        failure_of("ops")
        report()
        assert notified_subscriptions() == {ops.pk}
        assert Message.objects.get(event_type=event_type()).destination == "ops"

    def test_one_subscription_may_be_named(self, ops: Subscription) -> None:
        listening(subscriber=ops.subscriber, name="other")
        failure_of("ops/mail")
        report()
        assert notified_subscriptions() == {ops.pk}

    def test_nobody_is_notified_if_the_message_says_so(self, ops: Subscription) -> None:
        failure_of("-")
        assert (report(), reported(), FailureNotice.objects.count()) == (1, [], 0)

    def test_a_publisher_has_a_default_and_its_messages_may_say_something_else(
        self, ops: Subscription
    ) -> None:
        other = listening(subscriber=factories.subscriber("other"))
        publisher = factories.publisher(errors_to="ops")
        failure_of(publisher=publisher)
        report()
        assert notified_subscriptions() == {ops.pk}
        failure_of("other", publisher=publisher)
        failure_of("-", publisher=publisher)
        report()
        assert notified_subscriptions() == {ops.pk, other.pk}
        assert len(reported()) == 2

    def test_an_empty_header_is_all_who_want_them(self, ops: Subscription) -> None:
        all_of_them = listening()
        failure_of("", publisher=factories.publisher(errors_to="ops"))
        report()
        assert notified_subscriptions() == {ops.pk, all_of_them.pk}

    def test_who_is_deleted_since_is_in_the_journal_and_the_failure_is_published(self) -> None:
        wanting = listening()
        row = failure_of("ops")
        report()
        assert notified_subscriptions() == {wanting.pk}
        entry = JournalEntry.objects.get(kind="ERRORS_TO")
        assert (entry.message_id, entry.delivery_id) == (row.message_id, row.pk)

    def test_who_wants_none_of_it_is_in_the_journal(self, ops: Subscription) -> None:
        Subscription.objects.filter(pk=ops.pk).update(status="INACTIVE")
        listening()
        failure_of("ops")
        report()
        assert notified_subscriptions() == set()
        assert "ops" in JournalEntry.objects.get(kind="UNMATCHED").text

    def test_the_header_of_a_callbacks_answer_counts_for_nothing(self, ops: Subscription) -> None:
        answers, _ = EventType.objects.get_or_create(name="Inturn.Callback")
        wanting = listening()
        message = factories.message(headers={"errorsto": "-"}, publisher=None, event_type=answers)
        failed(message=message)
        report()
        assert notified_subscriptions() == {wanting.pk, ops.pk}

    def test_a_failed_report_is_not_reported(self, ops: Subscription) -> None:
        message = factories.message(event_type=event_type(), publisher=None, destination="ops")
        failed(message=message, subscription=ops)
        report()
        assert Message.objects.get(event_type=event_type()) == message

    def test_names_are_looked_up_once_for_many_failures(
        self, ops: Subscription, django_assert_max_num_queries: Any
    ) -> None:
        for _ in range(20):
            failure_of("ops", publisher=factories.publisher())
        with django_assert_max_num_queries(14):
            report()
        assert len(reported()) == 20


class TestErrorsToAtPublication:
    @pytest.fixture
    def publisher(self) -> Caller:
        return caller(Scope.PUBLISH)

    @pytest.fixture
    def event(self) -> str:
        return factories.event_type("Order.Made").name

    @pytest.mark.parametrize("name", ["ops", "ops/mail", "-", ""])
    def test_who_may_be_named_is_stored_with_the_message(
        self, ops: Subscription, publisher: Caller, event: str, name: str
    ) -> None:
        assert publisher.publish(event, ErrorsTo=name).status == 202
        assert Message.objects.get().headers["errorsto"] == name

    @pytest.mark.parametrize(
        "name", ["nobody", "ops/nothing", "ops/", "nothing-wanted", "a b", "ops/mail/x", "é"]
    )
    def test_an_unknown_name_is_refused_and_nothing_is_stored(
        self, ops: Subscription, publisher: Caller, event: str, name: str
    ) -> None:
        factories.subscription(subscriber=factories.subscriber("nothing-wanted"))
        for kind in ("TOPIC", "SYNC"):
            EventType.objects.filter(name=event).update(kind=kind)
            refused(publisher.publish(event, ErrorsTo=name), 404, "no-such-errors-to")
        assert not Message.objects.exists()

    def test_each_item_of_a_batch_has_its_own(
        self, ops: Subscription, publisher: Caller, event: str
    ) -> None:
        items = [
            {"event": event, "body": 1, "headers": {"ErrorsTo": name}} for name in ("ops", "-")
        ]
        assert publisher.post("messages:batch", items).status == 202
        stored = Message.objects.order_by("id").values_list("headers__errorsto", flat=True)
        assert list(stored) == ["ops", "-"]
        bad = {"event": event, "body": 1, "headers": {"ErrorsTo": "nobody"}}
        problem = refused(publisher.post("messages:batch", [*items, bad]), 404, "no-such-errors-to")
        assert problem["index"] == 2
        results = publisher.post("messages:batch?partial=true", [bad, *items]).body["results"]
        assert [("error" in result) for result in results] == [True, False, False]

    def test_a_repeated_key_is_answered_though_who_was_named_is_gone(
        self, ops: Subscription, publisher: Caller, event: str
    ) -> None:
        first = publisher.publish(event, ErrorsTo="ops", Idempotency_Key="k")
        ops.delete()
        assert publisher.publish(event, ErrorsTo="ops", Idempotency_Key="k").body == first.body
        refused(
            publisher.publish(event, ErrorsTo="ops", Idempotency_Key="l"), 404, "no-such-errors-to"
        )

    def test_a_publishers_default_is_checked_and_may_be_taken_back(self, ops: Subscription) -> None:
        manager = caller()
        created(manager.post("publishers", {"name": "teamforge", "errors_to": "ops/mail"}))
        answer = manager.patch("publishers/teamforge", {"errors_to": "nobody"})
        assert fields_of(refused(answer, 400)) == {"errors_to"}
        assert manager.patch("publishers/teamforge", {"errors_to": ""}).body["errors_to"] == ""
        assert manager.patch("publishers/teamforge", {"errors_to": "-"}).status == 200

    def test_an_edited_copy_keeps_it(self, ops: Subscription) -> None:
        row = failure_of("ops")
        answer = caller().post(f"deliveries/{row.pk}/resubmit", {"body": {"mended": True}})
        assert answer.status == 202, answer
        assert Message.objects.get(edited_from=row.message).headers["errorsto"] == "ops"


def test_a_failure_is_reported_in_the_transaction_that_takes_it(ops: Subscription) -> None:
    failure_of("ops")
    with transaction.atomic():
        failures.publish_notices(limit=1)
        transaction.set_rollback(True)
    assert (reported(), FailureNotice.objects.count()) == ([], 1)
    report()
    assert (
        orjson.loads(bytes(Message.objects.get(event_type=event_type()).body))["status"]
        == "REJECTED"
    )
