"""Support resubmits deliveries in the console: by a button, or edited.

Each is a POST with its own right.
"""

import re
from html import unescape

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client

from delivery.models import Delivery, JournalEntry, JournalKind, Message, Status
from tests.support import factories
from tests.unit.delivery.support.test_resubmit import now_of

DELIVERY = "/admin/delivery/delivery"
RESUBMISSION = "/admin/delivery/resubmission"
BUTTONS = {
    "resubmit": "Resubmit",
    "edit": "Edit and resubmit",
    "mark-delivered": "Mark as",
    "cancel": "Cancel",
}


@pytest.fixture
def row(db: None) -> Delivery:
    return factories.delivery(Status.REJECTED)


def posted(client: Client, address: str, **data: str) -> str:
    return client.post(address, data, follow=True).text


class TestButtons:
    @pytest.mark.parametrize(
        ("status", "offered"),
        [
            (Status.PENDING, {"cancel"}),
            (Status.DELIVERED, {"edit"}),
            (Status.REJECTED, {"resubmit", "edit"}),
            (Status.IN_DOUBT, {"resubmit", "edit", "mark-delivered", "cancel"}),
        ],
    )
    def test_a_page_offers_the_possible_actions(
        self, ann: Client, status: Status, offered: set[str]
    ) -> None:
        row = factories.delivery(status)
        page = ann.get(f"{DELIVERY}/{row.pk}/change/").text
        assert {verb for verb in BUTTONS if f"{DELIVERY}/{row.pk}/{verb}/" in page} == offered

    def test_a_sync_delivery_cannot_be_resubmitted(self, ann: Client, db: None) -> None:
        row = factories.delivery(Status.REJECTED, lane=None)
        assert f"{DELIVERY}/{row.pk}/resubmit/" not in ann.get(f"{DELIVERY}/{row.pk}/change/").text

    def test_a_delivery_is_resubmitted_and_a_second_click_is_explained(
        self, ann: Client, row: Delivery
    ) -> None:
        assert "is queued again" in posted(ann, f"{DELIVERY}/{row.pk}/resubmit/")
        assert (now_of(row).status, now_of(row).reason) == (Status.PENDING, "resubmitted by ann")
        assert "Nothing was done. It is PENDING" in posted(ann, f"{DELIVERY}/{row.pk}/resubmit/")
        assert JournalEntry.objects.get().kind == JournalKind.RESUBMITTED

    def test_a_delivery_in_doubt_is_decided(self, ann: Client, db: None) -> None:
        received, unwanted = (
            factories.delivery(Status.IN_DOUBT),
            factories.delivery(Status.IN_DOUBT),
        )
        assert "is marked as DELIVERED" in posted(ann, f"{DELIVERY}/{received.pk}/mark-delivered/")
        assert "is CANCELLED" in posted(ann, f"{DELIVERY}/{unwanted.pk}/cancel/")
        assert [now_of(row).status for row in (received, unwanted)] == [
            Status.DELIVERED,
            Status.CANCELLED,
        ]
        assert "Nothing was done" in posted(ann, f"{DELIVERY}/{received.pk}/mark-delivered/")

    def test_selected_deliveries_are_resubmitted_where_possible(
        self, ann: Client, row: Delivery
    ) -> None:
        delivered = factories.delivery(Status.DELIVERED)
        chosen = {"action": "resubmit_chosen", "_selected_action": [row.pk, delivered.pk]}
        page = ann.post(f"{DELIVERY}/", chosen, follow=True).text
        assert "1 resubmitted. 1 cannot be resubmitted" in page
        assert [now_of(delivery).status for delivery in (row, delivered)] == [
            Status.PENDING,
            Status.DELIVERED,
        ]

    def test_selected_deliveries_are_marked_delivered(self, ann: Client, row: Delivery) -> None:
        doubtful = factories.delivery(Status.IN_DOUBT)
        chosen = {"action": "mark_chosen_delivered", "_selected_action": [row.pk, doubtful.pk]}
        assert (
            "1 DELIVERED. 1 were not IN_DOUBT" in ann.post(f"{DELIVERY}/", chosen, follow=True).text
        )
        assert now_of(doubtful).status == Status.DELIVERED


def text_of_area(page: str, name: str) -> str:
    """Return the text that a browser shows: it drops a line break right behind the tag."""
    (area,) = re.findall(rf'<textarea name="{name}"[^>]*>(.*?)</textarea>', page, re.DOTALL)
    text: str = unescape(area)
    return text.replace("\r\n", "\n").removeprefix("\n")


class TestEditing:
    def test_the_edited_copy_goes_to_the_one_subscription(self, ann: Client, row: Delivery) -> None:
        page = ann.get(f"{DELIVERY}/{row.pk}/edit/").text
        assert "{&quot;number&quot;: 1}" in page
        page = posted(ann, f"{DELIVERY}/{row.pk}/edit/", body='{"number": 2}')
        copy = Message.objects.get(edited_from=row.message)
        assert f"{copy.public_id} is sent to {row.subscription} only" in page
        assert (bytes(copy.body), copy.headers) == (b'{"number": 2}', row.message.headers)
        assert now_of(row).status == Status.REJECTED
        original = ann.get(f"/admin/delivery/message/{row.message_id}/change/").text
        assert f'/admin/delivery/message/{copy.pk}/change/">{copy.public_id}<' in original
        edited = ann.get(f"/admin/delivery/message/{copy.pk}/change/").text
        assert (
            f'/admin/delivery/message/{row.message_id}/change/">{row.message.public_id}<' in edited
        )

    @pytest.mark.parametrize(
        ("body", "sent", "stored"),
        [
            (b"a\nb", "a\r\nc", b"a\nc"),
            (b"a\r\nb", "a\r\nc", b"a\r\nc"),
            (b"\n a ", "\r\n b ", b"\n b "),
        ],
    )
    def test_line_breaks_and_spaces_are_kept(
        self, ann: Client, db: None, body: bytes, sent: str, stored: bytes
    ) -> None:
        event_type = factories.event_type(content_type="text/plain")
        message = factories.message(body, event_type=event_type, content_type="text/plain")
        subscription = factories.subscription(event_type=event_type)
        row = factories.delivery(Status.REJECTED, message=message, subscription=subscription)
        ann.post(f"{DELIVERY}/{row.pk}/edit/", {"body": sent})
        assert bytes(Message.objects.get(edited_from=message).body) == stored

    @pytest.mark.parametrize("breaks", ["\n", "\n\n", "\r\n", "\r\n\r\n", "\n\t\n", ""])
    def test_line_breaks_before_the_text_are_shown_and_kept(
        self, ann: Client, db: None, breaks: str
    ) -> None:
        body = f"{breaks}[1,\n2]".replace("\n2", "\r\n2" if "\r" in breaks else "\n2").encode()
        row = factories.delivery(Status.REJECTED, message=factories.message(body))
        shown = text_of_area(ann.get(f"{DELIVERY}/{row.pk}/edit/").text, "body")
        assert shown == body.decode().replace("\r\n", "\n")
        ann.post(f"{DELIVERY}/{row.pk}/edit/", {"body": shown.replace("\n", "\r\n")})
        assert bytes(Message.objects.get(edited_from=row.message).body) == body

    def test_an_unpublishable_body_is_refused_at_its_field(
        self, ann: Client, row: Delivery
    ) -> None:
        page = posted(ann, f"{DELIVERY}/{row.pk}/edit/", body='{"number": ')
        assert "The body is not JSON" in page
        assert "{&quot;number&quot;: </textarea>" in page

    def test_a_pending_delivery_is_cancelled_first(self, ann: Client, db: None) -> None:
        row = factories.delivery()
        assert "cancel it first" in posted(ann, f"{DELIVERY}/{row.pk}/edit/", body="{}")

    @pytest.mark.parametrize("body", [b"\xff", b"a\0b"])
    def test_binary_bodies_are_left_to_the_api(self, ann: Client, db: None, body: bytes) -> None:
        row = factories.delivery(Status.REJECTED, message=factories.message(body))
        page = ann.get(f"{DELIVERY}/{row.pk}/edit/").text
        assert "body_base64" in page
        assert "<textarea" not in page
        ann.post(f"{DELIVERY}/{row.pk}/edit/", {"body": "x"})
        assert not Message.objects.exclude(edited_from=None).exists()


class TestRights:
    @pytest.mark.parametrize("verb", ["resubmit", "mark-delivered", "cancel", "edit"])
    def test_readers_resubmit_nothing(self, reader: Client, row: Delivery, verb: str) -> None:
        assert reader.post(f"{DELIVERY}/{row.pk}/{verb}/").status_code == 403
        page = reader.get(f"{DELIVERY}/{row.pk}/change/").text
        assert not any(f"/{row.pk}/{button}/" in page for button in BUTTONS)

    def test_readers_see_resubmissions_and_start_none(self, reader: Client, row: Delivery) -> None:
        assert reader.get(f"{RESUBMISSION}/").status_code == 200
        assert reader.get(f"{RESUBMISSION}/add/?status=REJECTED").status_code == 403
        assert reader.post(f"{RESUBMISSION}/add/", {"status": "REJECTED"}).status_code == 403
        assert (
            reader.post(f"{RESUBMISSION}/add/?verb=CANCEL", {"status": "PENDING"}).status_code
            == 403
        )
        assert f"{RESUBMISSION}/add/" not in reader.get(f"{DELIVERY}/").text

    def test_editing_needs_the_right_to_see_messages(self, client: Client, row: Delivery) -> None:
        user = User.objects.create_user("sue", is_staff=True)
        names = ("view_delivery", "change_delivery")
        user.user_permissions.set(Permission.objects.filter(codename__in=names))
        client.force_login(user)
        assert client.get(f"{DELIVERY}/{row.pk}/edit/").status_code == 403
        page = client.get(f"{DELIVERY}/{row.pk}/change/").text
        assert f"/{row.pk}/resubmit/" in page
        assert f"/{row.pk}/edit/" not in page

    @pytest.mark.parametrize("verb", ["resubmit", "mark-delivered", "cancel"])
    def test_a_get_request_changes_nothing(self, ann: Client, row: Delivery, verb: str) -> None:
        assert ann.get(f"{DELIVERY}/{row.pk}/{verb}/").status_code == 405
        assert now_of(row).status == Status.REJECTED


class TestReserved:
    def test_reserved_messages_are_read_only(self, ann: Client, db: None) -> None:
        event_type = factories.event_type("Inturn.Other")
        page = ann.get(f"/admin/subscriptions/eventtype/{event_type.pk}/change/").text
        assert 'name="_save"' not in page
        assert (
            ann.post(f"/admin/subscriptions/eventtype/{event_type.pk}/delete/").status_code == 403
        )

    def test_no_other_is_made_with_its_name(self, ann: Client, db: None) -> None:
        values = {"name": "Inturn.Mine", "kind": "TOPIC", "content_type": "text/plain"}
        page = posted(ann, "/admin/subscriptions/eventtype/add/", **values, durability="GUARANTEED")
        assert "own; choose another name" in page
