"""The trace of a message: its events by name, its branches, and why it was matched."""

import json
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from delivery.console.messages import reasons
from delivery.console.messages import trace_events as events
from delivery.console.messages.page import WantedPage, read_message_page
from delivery.models import Callback, Delivery, Message, Replay, Resubmission
from delivery.models.lane import CALLBACK_EVENT_TYPE
from delivery.states import Status
from delivery.support.resolve import cancel_delivery, mark_delivered
from subscriptions.models import EventType
from tests.support import factories
from tests.unit.delivery.console.traced import TracedMessage, deactivate, traced_message

pytestmark = pytest.mark.django_db


@pytest.fixture
def traced() -> TracedMessage:
    return traced_message()


def _texts(message: Message, delivery: Delivery | None = None) -> list[str]:
    """Return the events as `name words`, of one delivery or of the message itself."""
    found = read_message_page(message, WantedPage(may_see=True)).trace.events
    return [
        f"{event.name} {event.text}".strip()
        for event in found
        if (event.delivery and event.delivery.pk) == (delivery and delivery.pk)
    ]


class TestTracedEvents:
    # Within one transaction the database's clock would stand still.
    @pytest.mark.django_db(transaction=True)
    def test_every_settlement_and_resubmission_is_reported_with_its_person_and_job(
        self, traced: TracedMessage
    ) -> None:
        assert _texts(traced.message, traced.rejected) == [
            "CLIENT_ERROR attempt 1, 404: Not Found",
            "REJECTED settled",
            f"resubmitted by sue, in {Resubmission.objects.get()}",
            "CLIENT_ERROR attempt 2, 404: Not Found",
            "REJECTED settled",
            "resubmitted by bob",
            "CLIENT_ERROR attempt 3, 404: Not Found",
            "REJECTED settled",
        ]

    def test_the_message_has_publication_matching_and_copies(self, traced: TracedMessage) -> None:
        assert _texts(traced.message) == [
            "published by shop",
            "matched 2 subscriptions",
            "held crm-cases/cases was made HELD: messages are stored, and nothing of it is sent "
            "or handed out, by sue",
            f"edited copy {traced.copy.public_id} was sent by ann",
        ]
        assert (
            _texts(traced.copy)[0] == f"published as an edited copy of {traced.message.public_id}"
        )

    def test_a_hold_of_a_settled_delivery_is_no_event_of_it(self) -> None:
        row = factories.delivery(Status.DELIVERED, settled_at=timezone.now() - timedelta(hours=1))
        Message.objects.filter(pk=row.message_id).update(
            published_at=timezone.now() - timedelta(hours=2)
        )
        deactivate(row.subscription)
        row.message.refresh_from_db()
        assert _texts(row.message) == [f"published by {row.message.publisher}"]

    def test_people_who_cancel_and_decide_are_named(self) -> None:
        message = factories.message()
        opened, doubtful, sent = (
            factories.delivery(status, message=message)
            for status in (Status.PENDING, Status.IN_DOUBT, Status.IN_DOUBT)
        )
        cancel_delivery(opened.pk, actor="sue")
        cancel_delivery(doubtful.pk, actor="bob")
        mark_delivered(sent.pk, actor="ann")
        assert _texts(message, opened) == ["CANCELLED cancelled by sue"]
        assert _texts(message, doubtful)[-1] == "CANCELLED in doubt, cancelled by bob"
        assert _texts(message, sent)[-1] == "DELIVERED in doubt, marked as delivered by ann"

    def test_a_replay_and_a_script_are_events(self, traced: TracedMessage) -> None:
        replay = Replay.objects.create(
            subscription=traced.rejected.subscription,
            asked_by="rita",
            since=timezone.now() - timedelta(1),
            until=timezone.now(),
        )
        row = factories.delivery(
            message=traced.message, subscription=traced.rejected.subscription, replay=replay
        )
        assert _texts(traced.message, row)[0].startswith(
            f"replayed replay {replay.pk}, requested by"
        )
        assert "script version 1 made the request" in _texts(traced.message, traced.scripted)

    def test_the_report_of_a_failure_is_found(self, traced: TracedMessage) -> None:
        report = failed_report(traced.rejected)
        assert f"reported as {report.public_id}" in _texts(traced.message, traced.rejected)
        reported = read_message_page(report, WantedPage(may_see=False)).reported
        assert reported == f"delivery {traced.rejected.pk} of {traced.message.public_id}"

    def test_a_callback_is_a_branch_of_both_messages(self) -> None:
        event_type = factories.event_type(kind="QUEUE")
        asked = factories.message(event_type=event_type)
        own, _ = EventType.objects.get_or_create(name=CALLBACK_EVENT_TYPE)
        answer = factories.message(event_type=own, publisher=None)
        Callback.objects.create(
            message=asked,
            queue_group=0,
            url="https://a.example/cb",
            expires_at=timezone.now(),
            answered_at=timezone.now(),
            answer=answer,
        )
        assert f"callback received; forwarded as {answer.public_id}" in _texts(asked)
        assert f"published as the response to {asked.public_id}, by callback" in _texts(answer)

    def test_a_long_trace_keeps_its_beginning_and_its_end(
        self, traced: TracedMessage, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        page = read_message_page(traced.message, WantedPage(may_see=True))
        monkeypatch.setattr(events, "FIRST_EVENTS", 1)
        rows = page.trace.events
        found = events.Trace(events=rows, left_out=3, is_whole=True)
        assert found.beginning + found.rest == rows

    def test_without_the_right_to_read_the_journal_it_is_left_out(
        self, traced: TracedMessage
    ) -> None:
        wanted = WantedPage(may_see=True, reads_journal=False)
        found = read_message_page(traced.message, wanted).trace
        assert (found.is_whole, "held" in {event.name for event in found.events}) == (True, False)


def failed_report(row: Delivery) -> Message:
    body = json.dumps({"delivery": row.pk, "message": row.message.public_id})
    return factories.message(
        body.replace(": ", ":").replace(", ", ",").encode(),
        event_type=EventType.objects.get(name="Inturn.Delivery.Failed"),
        publisher=None,
        published_at=timezone.now(),
    )


class TestMatchReasons:
    def test_are_those_of_then_beside_those_of_today(
        self, traced: TracedMessage, ann: Client
    ) -> None:
        found = read_message_page(traced.message, WantedPage(may_see=True)).reasons
        assert found.as_now == ""
        mail = next(row for row in found.rows if row.subscription.name == "mail")
        assert (mail.matched, mail.reason, mail.now) == (False, "it is INACTIVE", "it matches")
        assert mail.change is not None
        page = ann.get(f"/admin/delivery/message/{traced.message.pk}/change/").text
        assert "as it was configured when it was" in page
        assert "Now: it matches." in page

    def test_a_delivery_is_believed_rather_than_the_log(self) -> None:
        row = factories.delivery()
        # As if a program had changed it without the log.
        row.subscription.filter = "1 = 2"
        row.subscription.created_at = row.message.published_at - timedelta(1)
        row.subscription.save()
        (reason,) = read_message_page(row.message, WantedPage(may_see=True)).reasons.rows
        assert (reason.matched, reason.reason) == (
            True,
            "it matched; the configuration log does not say how",
        )

    def test_after_too_many_changes_today_explains_and_says_so(
        self, traced: TracedMessage, monkeypatch: pytest.MonkeyPatch, ann: Client
    ) -> None:
        monkeypatch.setattr("subscriptions.matching.past_subscriptions.MOST_CHANGES", 0)
        found = read_message_page(traced.message, WantedPage(may_see=True)).reasons
        assert "has been changed more than" in found.as_now
        assert {row.subscription.name: row.matched for row in found.rows} == {
            "orders": True,
            "cases": True,
            "mail": False,
        }
        page = ann.get(f"/admin/delivery/message/{traced.message.pk}/change/").text
        assert "has been changed more than" in page

    def test_many_subscriptions_are_explained_on_request(
        self, traced: TracedMessage, monkeypatch: pytest.MonkeyPatch, ann: Client
    ) -> None:
        monkeypatch.setattr(reasons, "EXPLAINED", 2)
        address = f"/admin/delivery/message/{traced.message.pk}/change/"
        assert "Explain\n            all" in ann.get(address).text
        assert "it is INACTIVE" in ann.get(f"{address}?explain=all").text
