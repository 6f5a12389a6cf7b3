"""The filter tester: the result of publishing, places of errors, and bounded work."""

from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from delivery.console.subscriptions import filter_preview
from delivery.console.subscriptions.filter_preview import preview_filter
from delivery.models import Delivery
from delivery.publishing.drafts import Draft
from delivery.publishing.publish import publish
from subscriptions.models import EventType
from tests.support import factories

ADDRESS = "/admin/subscriptions/subscription/filter-test/"
FILTERS = (
    ("", ""),
    ("", "a"),
    ("$$->'Body'->>'n' = '3'", ""),
    ("$$->'Body'->'n' > 2 AND NOT $$->'Header'->>'Priority' = 'low'", ""),
    ("$$->'Body'->'nothing' is null", "a"),
    ("$$->'Body' ? 'list' or $$->'Header'->>'priority' like 'h%'", ""),
)
BODIES = (b'{"n": 3}', b'{"n": 1, "list": []}', b'{"n": "3"}', b"[1, 2]", b'{"n": 4}')
HEADERS: tuple[dict[str, str], ...] = (
    {},
    {"filter-string": "a"},
    {"filter-string": "b", "priority": "low"},
    {"priority": "high"},
)


def publish_each(event_type: EventType) -> None:
    drafts = [
        Draft(event_type=event_type, body=body, headers=headers)
        for body in BODIES
        for headers in HEADERS
    ]
    publish(factories.publisher(), drafts)


@pytest.mark.parametrize(("text", "header_filter_string"), FILTERS)
def test_the_preview_agrees_with_publishing(db: None, text: str, header_filter_string: str) -> None:
    event_type = factories.event_type()
    subscription = factories.subscription(
        event_type=event_type, filter=text, header_filter_string=header_filter_string
    )
    publish_each(event_type)
    delivered = set(
        Delivery.objects.filter(subscription=subscription).values_list("message_id", flat=True)
    )
    said = preview_filter(
        event_type.pk, header_filter_string=header_filter_string, filter_text=text
    )
    assert (said.published, said.matched) == (len(BODIES) * len(HEADERS), len(delivered))
    assert {message.message_id for message in said.matching} <= delivered
    assert not {message.message_id for message in said.others} & delivered
    assert all(message.reason for message in said.others)


def test_the_preview_reads_the_newest_messages_of_the_event_type(
    db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(filter_preview, "MESSAGES", 3)
    event_type = factories.event_type()
    rows = [factories.message(event_type=event_type) for _ in range(5)]
    factories.message()
    said = preview_filter(event_type.pk, header_filter_string="", filter_text="")
    assert [message.message_id for message in said.matching] == [row.pk for row in rows[:1:-1]]
    assert (said.evaluated, said.is_cut) == (3, False)


def test_the_preview_ends_where_the_bodies_are_long(
    db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(filter_preview, "BYTES", 25)
    event_type = factories.event_type()
    for _ in range(5):
        factories.message(b'{"number":1}', event_type=event_type)
    said = preview_filter(
        event_type.pk, header_filter_string="", filter_text="$$->'Body'->'number' = 1"
    )
    assert (said.evaluated, said.matched, said.bytes, said.is_cut) == (3, 3, 36, True)


def test_messages_to_one_destination_are_left_out(db: None) -> None:
    event_type = factories.event_type()
    factories.message(event_type=event_type)
    factories.message(event_type=event_type, destination="crm")
    said = preview_filter(event_type.pk, header_filter_string="", filter_text="")
    assert (said.evaluated, said.published, said.delivered, said.matched) == (2, 1, 1, 1)


class TestInTheForm:
    @pytest.fixture
    def event_type(self, db: None) -> EventType:
        event_type = factories.event_type("Made", sample={"n": 3})
        publish_each(event_type)
        return event_type

    def test_an_unsaved_filter_is_tried_on_sample_pasted_body_and_messages(
        self, ann: Client, event_type: EventType
    ) -> None:
        typed = {
            "event_type": event_type.pk,
            "filter": " $$->'Body'->'n' = 3 \r\n",
            "tested_body": '{"n": 5}',
        }
        answer = said(ann, **typed)
        assert "matches the sample of Made" in answer
        assert "no match your own message: its filter is not true of the message" in answer
        assert "Would have matched 4 of the last 20 messages of Made." in answer

    def test_headers_are_tried_too(self, ann: Client, event_type: EventType) -> None:
        typed = {"event_type": event_type.pk, "header_filter_string": "a", "filter": ""}
        assert "the message has no FILTER_STRING header" in said(ann, **typed)
        answer = said(ann, **typed, tested_headers="FILTER_STRING: a")
        assert "matches the sample of Made" in answer
        assert "Would have matched 5 of the last 20" in answer

    def test_a_wrong_filter_shows_its_position_and_is_not_tried(
        self, ann: Client, event_type: EventType, django_assert_num_queries: DjangoAssertNumQueries
    ) -> None:
        text = "$$->'Body'->>'n' = '3'\r\nand $$->'Body' = = 1"
        answer = ann.post(ADDRESS, {"event_type": event_type.pk, "filter": text}).text
        assert "(line 2, column 18)" in answer
        assert "and $$-&gt;&#x27;Body&#x27; = = 1\n                 ^</pre>" in answer
        assert "Would have matched" not in answer
        # The session and the user.
        with django_assert_num_queries(2):
            checked = ann.post(ADDRESS, {"filter": text, "check": "1"}).text
        assert "(line 2, column 18)" in checked
        assert (
            "Valid filter."
            in ann.post(ADDRESS, {"filter": "$$->'Body' is null", "check": "1"}).text
        )

    @pytest.mark.parametrize(
        ("typed", "text"),
        [
            ({"tested_headers": "no colon"}, "Line 1 is not a header"),
            ({"header_filter_string": "a\x01"}, "holds a control character"),
            ({"tested_body": "<xml/>"}, "The body is not JSON"),
            ({"event_type": ""}, "Choose an event type"),
            ({"event_type": "9" * 30}, "Choose an event type"),
            ({}, "every message of the event type matches"),
        ],
    )
    def test_the_tester_names_the_next_step(
        self, ann: Client, event_type: EventType, typed: dict[str, Any], text: str
    ) -> None:
        assert text in said(ann, **({"event_type": event_type.pk, "filter": ""} | typed))

    def test_missing_sample_and_messages_are_reported(self, ann: Client) -> None:
        answer = said(ann, event_type=factories.event_type("New").pk, filter="")
        assert "New has no sample yet" in answer
        assert "No messages of New yet" in answer

    def test_payloads_are_not_shown(self, ann: Client, event_type: EventType) -> None:
        factories.message(
            b'{"n": "within"}', event_type=event_type, headers={"filter-string": "beside"}
        )
        typed = {"event_type": event_type.pk, "filter": "", "header_filter_string": "x"}
        answer = said(ann, **typed)
        assert "it has another FILTER_STRING header, or none" in answer
        assert "within" not in answer
        assert "beside" not in answer


class TestRightsToTest:
    @pytest.fixture
    def stored(self, db: None) -> Any:
        row = factories.subscription(filter="$$->'Body'->>'number' = '1'")
        factories.message(event_type=row.event_type)
        return row

    def test_readers_may_test_the_stored_filter(self, reader: Client, stored: Any) -> None:
        page = reader.get(f"/admin/subscriptions/subscription/{stored.pk}/change/").text
        assert 'name="tested_subscription"' in page
        answer = said(reader, tested_subscription=stored.pk)
        assert "Would have matched 1 of the last 1 message" in answer

    def test_without_the_right_to_see_payloads_filters_reveal_nothing(
        self, reader: Client, stored: Any
    ) -> None:
        User.objects.get(username="ray").user_permissions.remove(
            *Permission.objects.filter(codename="view_payload")
        )
        typed = {"event_type": stored.event_type_id, "filter": "$$->'Body'->>'number' = '1'"}
        answer = said(reader, **typed)
        assert "Would have matched" not in answer
        assert "you may not see payloads" in answer
        assert "Would have matched 1" in said(reader, tested_subscription=stored.pk)
        guessed = {"event_type": stored.event_type_id, "header_filter_string": "a guess"}
        assert "Would have matched" not in said(reader, **guessed)

    def test_others_may_not(self, reader: Client, stored: Any) -> None:
        ray = User.objects.get(username="ray")
        ray.user_permissions.remove(Permission.objects.get(codename="view_message"))
        assert reader.post(ADDRESS, {"filter": ""}).status_code == 403
        assert (
            "Test the filter"
            not in reader.get(f"/admin/subscriptions/subscription/{stored.pk}/change/").text
        )


def said(client: Client, **typed: Any) -> str:
    """Return the text of the answer, without markup."""
    from html import unescape
    from re import sub

    answer = client.post(ADDRESS, typed)
    assert answer.status_code == 200
    return " ".join(unescape(sub(r"<[^>]+>", "", answer.text)).split())
