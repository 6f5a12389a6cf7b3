"""The trace on the page of a message: parts of many deliveries, actions, bodies; and its export."""

import json

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client

from delivery.console.messages.page import WantedPage, read_message_page
from delivery.states import Status
from tests.support import factories
from tests.unit.delivery.console.traced import TracedMessage, traced_message

pytestmark = pytest.mark.django_db


@pytest.fixture
def traced() -> TracedMessage:
    return traced_message()


class TestPageOfTrace:
    def test_failures_come_first_and_the_others_on_further_pages(
        self, ann: Client, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        message = factories.message()
        subscription = factories.subscription(event_type=message.event_type)
        for _ in range(22):
            factories.delivery(Status.DELIVERED, message=message, subscription=subscription)
        failed = factories.delivery(Status.REJECTED, message=message, subscription=subscription)
        first = read_message_page(message, WantedPage(may_see=True))
        assert first.deliveries[0].delivery.pk == failed.pk
        assert (len(first.deliveries), first.part.total, first.part.next) == (20, 23, 20)
        address = f"/admin/delivery/message/{message.pk}/change/"
        shown = ann.get(address).text
        assert "1 to 20\n                of 23" in shown
        assert f"{address}?deliveries=20" in shown
        last = ann.get(f"{address}?deliveries=20").text
        assert "21 to 23" in last
        assert f"delivery {failed.pk}<" not in last

    def test_a_part_beyond_the_end_is_empty(self, ann: Client, traced: TracedMessage) -> None:
        answer = ann.get(f"/admin/delivery/message/{traced.message.pk}/change/?deliveries=999")
        assert answer.status_code == 200

    def test_actions_stand_at_each_delivery_for_those_who_may(
        self, ann: Client, reader: Client, traced: TracedMessage
    ) -> None:
        address = f"/admin/delivery/message/{traced.message.pk}/change/"
        wanted = [
            f"/admin/delivery/delivery/{traced.rejected.pk}/resubmit/",
            f"/admin/delivery/delivery/{traced.rejected.pk}/edit/",
            f"/admin/delivery/delivery/{traced.scripted.pk}/cancel/",
            f"/admin/subscriptions/subscription/{traced.rejected.subscription_id}/hold/",
            f"/admin/subscriptions/subscription/{traced.rejected.subscription_id}/deactivate/",
            f"/admin/subscriptions/subscription/{traced.scripted.subscription_id}/activate/deliver/",
        ]
        for action in wanted:
            assert action in ann.get(address).text, action
            assert action not in reader.get(address).text, action

    def test_published_and_sent_bodies_are_compared(
        self, ann: Client, traced: TracedMessage
    ) -> None:
        for address in (f"message/{traced.message.pk}", f"delivery/{traced.scripted.pk}"):
            shown = ann.get(f"/admin/delivery/{address}/change/").text
            assert "−   &quot;customer&quot;: &quot;Jürgen Müller&quot;" in shown, address
            assert "+   &quot;customer&quot;: &quot;M.&quot;" in shown, address
        copy = ann.get(f"/admin/delivery/message/{traced.copy.pk}/change/").text
        assert f"compared with {traced.message.public_id}" in copy

    def test_json_is_shown_indented_and_as_it_came(
        self, ann: Client, traced: TracedMessage
    ) -> None:
        shown = ann.get(f"/admin/delivery/message/{traced.message.pk}/change/").text
        assert "Jürgen Müller" in shown
        assert "J\\u00fcrgen M\\u00fcller" in shown
        assert "no such customer" in shown


class TestExportedTrace:
    def test_json_has_everything_in_one_document(self, ann: Client, traced: TracedMessage) -> None:
        answer = ann.get(f"/admin/delivery/message/{traced.message.pk}/trace/json/")
        found = json.loads(b"".join(answer))
        assert found["message"]["body"] == bytes(traced.message.body).decode()
        assert found["exported_by"] == "ann"
        by_id = {row["id"]: row for row in found["deliveries"]}
        rejected = by_id[traced.rejected.pk]
        assert [attempt["number"] for attempt in rejected["attempts"]] == [1, 2, 3]
        assert rejected["attempts"][0]["response"] == '{"error":"no such customer"}'
        assert by_id[traced.scripted.pk]["sent_body"] == '{"id":1005,"customer":"M.","total":12.50}'
        assert {"published", "matched", "resubmitted", "held", "edited copy"} <= {
            event["name"] for event in found["events"]
        }
        assert found["events"] == sorted(found["events"], key=lambda event: event["at"])
        assert len(found["matching"]["subscriptions"]) == 3

    def test_text_is_readable_and_without_secrets(self, ann: Client, traced: TracedMessage) -> None:
        row = traced.rejected.subscription
        row.auth = {"type": "bearer", "token": "s3cret"}
        row.save()
        answer = ann.get(f"/admin/delivery/message/{traced.message.pk}/trace/text/")
        text = b"".join(answer).decode()
        for said in (
            f"{traced.message.public_id}  Shop.Order.Created",
            "resubmitted    by bob  [crm-orders/orders]",
            "Authorization: Bearer $KEY",
            '"customer": "Jürgen Müller"',
            "no  crm-mail/mail: it is INACTIVE (now: it matches)",
            "x-trace: abc-1",
        ):
            assert said in text, said
        assert "s3cret" not in text
        assert answer.headers["Content-Disposition"].endswith('.trace.txt"')

    def test_parts_of_many_deliveries_make_one_document(
        self, ann: Client, traced: TracedMessage, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("delivery.console.messages.trace_export.AT_ONCE", 1)
        answer = ann.get(f"/admin/delivery/message/{traced.message.pk}/trace/json/")
        found = json.loads(b"".join(answer))
        assert len(found["deliveries"]) == 2
        assert [event["name"] for event in found["events"]].count("published") == 1

    @pytest.mark.parametrize("form", ["json", "text"])
    def test_payloads_are_left_out_for_those_who_may_not_see_them(
        self, client: Client, traced: TracedMessage, form: str
    ) -> None:
        user = User.objects.create_user("paula", is_staff=True)
        user.user_permissions.set(Permission.objects.filter(codename__in=["view_message"]))
        client.force_login(user)
        answer = client.get(f"/admin/delivery/message/{traced.message.pk}/trace/{form}/")
        text = b"".join(answer).decode()
        for hidden in ("ller", "abc-1", "customer", "was made HELD", "by ann"):
            assert hidden not in text, hidden
        assert "x-trace" in text

    @pytest.mark.parametrize("form", ["json", "text"])
    def test_people_without_the_right_to_see_messages_get_none(
        self, client: Client, form: str
    ) -> None:
        client.force_login(User.objects.create_user("eve", is_staff=True))
        address = f"/admin/delivery/message/{factories.message().pk}/trace/{form}/"
        assert client.get(address).status_code == 403
