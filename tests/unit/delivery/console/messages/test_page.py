"""The page of a message: its content and its deliveries, with everything escaped."""

import pytest
from django.contrib.auth.models import User
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from delivery.console.messages.page import WantedPage, read_message_page
from delivery.states import OutcomeClass, Status
from delivery.support.payload import payload_of
from tests.support import factories

HOSTILE = b"<script>alert(1)</script>"


def test_shows_deliveries_attempts_headers_body_and_reasons(ann: Client) -> None:
    message = factories.message(
        b'{"id": "artf1008"}', headers={"x-trace": "abc", "filter-string": "a"}
    )
    subscription = factories.subscription(event_type=message.event_type)
    factories.subscription("other", event_type=message.event_type, header_filter_string="b")
    delivery = factories.delivery(
        Status.REJECTED, message=message, subscription=subscription, reason="404: gone"
    )
    page = ann.get(f"/admin/delivery/message/{message.pk}/change/").text
    for said in (
        message.public_id,
        str(subscription),
        "404: gone",
        "CLIENT_ERROR",
        "x-trace",
        "artf1008",
    ):
        assert said in page, said
    assert "its FILTER_STRING header is &#x27;a&#x27;, not &#x27;b&#x27;" in page
    assert f"/admin/delivery/delivery/{delivery.pk}/change/" in page


def test_costs_the_same_number_of_queries_however_many_deliveries(
    ann: Client, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    message = factories.message()
    for _ in range(6):
        subscription = factories.subscription(event_type=message.event_type)
        factories.delivery(Status.REJECTED, message=message, subscription=subscription)
    # Session, user, message, log of views; deliveries: counts, ids, rows, attempts; the trace:
    # earlier settlements, journal, reports, edited copies; the reasons: subscriptions, deliveries,
    # configuration log. Journal and reports are five each, for their limit of time, and the
    # event type of reports.
    with django_assert_num_queries(24):
        ann.get(f"/admin/delivery/message/{message.pk}/change/")


def test_a_message_without_subscription_links_to_the_reasons(ann: Client) -> None:
    page = ann.get(f"/admin/delivery/message/{factories.message().pk}/change/").text
    assert "No subscription matched." in page
    assert "has no subscriptions" in page


def test_foreign_text_is_escaped(ann: Client) -> None:
    message = factories.message(HOSTILE, headers={"x-hostile": HOSTILE.decode()})
    subscription = factories.subscription(event_type=message.event_type)
    delivery = factories.delivery(
        Status.REJECTED,
        message=message,
        subscription=subscription,
        reason=HOSTILE.decode(),
        attempts=1,
    )
    factories.attempt(delivery, error=HOSTILE.decode(), excerpt=HOSTILE)
    for address in (f"message/{message.pk}", f"delivery/{delivery.pk}"):
        page = ann.get(f"/admin/delivery/{address}/change/").text
        assert HOSTILE.decode() not in page
        assert "&lt;script&gt;" in page


def test_the_raw_body_is_the_exact_bytes_as_a_file_of_text(ann: Client) -> None:
    message = factories.message(HOSTILE + bytes(range(256)))
    answer = ann.get(f"/admin/delivery/message/{message.pk}/raw/")
    assert answer.content == HOSTILE + bytes(range(256))
    assert answer.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert (
        answer.headers["Content-Disposition"] == f'attachment; filename="{message.public_id}.txt"'
    )
    assert answer.headers["X-Content-Type-Options"] == "nosniff"


def test_the_newest_attempts_of_a_long_tried_delivery_are_shown(ann: Client) -> None:
    delivery = factories.delivery(attempts=15)
    for number in range(1, 16):
        factories.attempt(delivery, number=number, outcome=OutcomeClass.TIMEOUT)
    page = read_message_page(delivery.message, WantedPage(may_see=True))
    (shown,) = page.deliveries
    assert [item.attempt.number for item in shown.attempts] == list(range(15, 5, -1))
    assert shown.earlier == 5


@pytest.mark.parametrize(
    "address", ["message/999", "message/msg_x", "delivery/999", "delivery/x", "message/999/raw"]
)
def test_a_missing_message_is_404(ann: Client, address: str) -> None:
    suffix = "" if address.endswith("raw") else "change/"
    answer = ann.get(f"/admin/delivery/{address}/{suffix}")
    assert answer.status_code == 404


def test_the_page_needs_the_right_to_see_messages(client: Client, db: None) -> None:
    message = factories.message()
    client.force_login(User.objects.create_user("eve", is_staff=True))
    for suffix in ("change", "raw"):
        assert client.get(f"/admin/delivery/message/{message.pk}/{suffix}/").status_code == 403


class TestPayload:
    def test_utf8_is_shown_as_it_is(self) -> None:
        shown = payload_of("grün".encode())
        assert (shown.text, shown.is_binary, shown.is_cut) == ("grün", False, False)

    @pytest.mark.parametrize("body", [b"\xff\xfe", b"a\0b", b"\x89PNG\r\n"])
    def test_a_binary_payload_is_shown_in_hexadecimal(self, body: bytes) -> None:
        shown = payload_of(body)
        assert shown.is_binary
        assert body.hex(" ") in shown.text

    def test_a_long_text_is_cut_without_breaking_its_last_character(self) -> None:
        shown = payload_of(b"a" + "ü".encode() * 200_000)
        assert (shown.is_cut, shown.is_binary) == (True, False)
        assert shown.text.endswith("ü")
