"""Messages are found by texts and statuses: from the newest, in parts, within a time limit."""

from datetime import UTC, datetime
from typing import Any

import pytest
from django.db import connection
from django.db.models import BooleanField, F, QuerySet
from django.db.models.expressions import RawSQL

from delivery.database.queries import TimeUpError
from delivery.models import Lane, LaneKind, Message, Status
from delivery.support import search as searching
from delivery.support.search import Search, Walked, ids_between, walk_messages
from subscriptions.models import Mode, Subscription
from tests.support import factories

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)

pytestmark = pytest.mark.django_db


def published(count: int, body: bytes = b"{}", **fields: object) -> list[Message]:
    event_type = factories.event_type()
    return [factories.message(body, event_type=event_type, **fields) for _ in range(count)]


def walked(search: Search, *, count: int = 10, seconds: float = 10) -> Walked:
    first, last = ids_between(None, None)
    return walk_messages(
        Message.objects.all(), search, first=first, last=last, count=count, seconds=seconds
    )


def ids(found: Walked) -> list[int]:
    return [row.pk for row in found.rows]


class TestFoundMessages:
    def test_text_in_the_body_matches_exactly(self) -> None:
        wanted, _ = factories.message("Größe 'XL' %_ \\".encode()), factories.message()
        for text in ("Größe", "'XL'", "%_", "\\", "e 'X"):
            assert ids(walked(Search(body=text))) == [wanted.pk], text
        for text in ("größe", "XXL", "G_öße"):
            assert ids(walked(Search(body=text))) == [], text

    def test_a_text_within_a_body_that_is_no_text(self) -> None:
        wanted = factories.message(b"\xff\x00needle\xfe")
        assert ids(walked(Search(body="needle"))) == [wanted.pk]

    def test_a_header_by_its_name_or_its_value_or_both_in_any_case(self) -> None:
        wanted, _ = (
            factories.message(headers={"x-trace": "Abc-1"}),
            factories.message(headers={"y": "abc"}),
        )
        for text in ("X-Trace", "x-trace: abc", "TRACE: ABC-1", "bc-1"):
            assert ids(walked(Search(header=text))) == [wanted.pk], text
        assert ids(walked(Search(header="x-trace: abc-2"))) == []

    def test_messages_are_found_by_the_status_of_a_delivery(self) -> None:
        rows = {status: factories.delivery(status) for status in Status}
        for status, row in rows.items():
            assert ids(walked(Search(statuses=(status,)))) == [row.message_id]

    def test_a_message_must_match_every_condition(self) -> None:
        row = factories.delivery(
            Status.REJECTED, message=factories.message(b"needle", headers={"a": "b"})
        )
        factories.delivery(Status.REJECTED)
        factories.message(b"needle")
        assert ids(walked(Search(body="needle", header="a: b", statuses=("REJECTED",)))) == [
            row.message_id
        ]


class TestHowFar:
    def test_a_full_page_ends_it_and_the_next_begins_below(self) -> None:
        rows = published(5, b"needle")
        first = walked(Search(body="needle"), count=2)
        assert (ids(first), first.is_full) == ([rows[4].pk, rows[3].pk], True)
        rest = walk_messages(
            Message.objects.all(),
            Search(body="needle"),
            first=0,
            last=(first.reached or 0) - 1,
            count=10,
        )
        assert (ids(rest), rest.reached) == ([row.pk for row in rows[2::-1]], None)

    def test_a_search_out_of_time_reports_its_progress_and_always_makes_some(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(searching, "FIRST_PART", 2)
        # However busy this machine is.
        monkeypatch.setattr(searching, "LEAST_SECONDS", 60)
        rows = published(6, b"needle")
        found, last, walks = list[int](), rows[-1].pk, 0
        while last > 0:
            part = walk_messages(
                Message.objects.all(),
                Search(body="needle"),
                first=rows[0].pk,
                last=last,
                count=10,
                seconds=0,
            )
            found += ids(part)
            last, walks = (part.reached or 0) - 1, walks + 1
        assert walks == 3
        assert found == [row.pk for row in reversed(rows)]

    def test_every_id_is_read_once_whatever_the_sizes_of_the_parts(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        rows = published(12, b"needle")
        for size in (1, 2, 5, 100):
            monkeypatch.setattr(searching, "FIRST_PART", size)
            assert ids(walked(Search(body="needle"), count=50)) == [
                row.pk for row in reversed(rows)
            ]


class TestSubscriptions:
    """The newest deliveries of each subscription are read, and more only if these are too few."""

    def test_the_messages_are_those_of_a_walk_through_all_messages(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        named = self._subscriptions()
        made = [
            factories.delivery(status, subscription=subscription, **fields).message
            for status, fields in (*self._open(), *((status, {}) for status in Status))
            for subscription in named
        ]
        factories.delivery(Status.FAILED)
        every = Message.objects.all()
        odd = every.annotate(odd=F("pk") % 2).filter(odd=1)
        for search in (
            Search(subscriptions=tuple(subscription.pk for subscription in named)),
            Search(subscriptions=(named[0].pk,), statuses=("PENDING", "REJECTED")),
            Search(subscriptions=(named[1].pk,), statuses=("IN_FLIGHT",)),
            Search(subscriptions=()),
        ):
            for rows in (every, odd):
                pages = list[list[int]]()
                for few in (-1, 500):
                    monkeypatch.setattr(searching, "FEW_SUBSCRIPTIONS", few)
                    pages.append(self._pages(rows, search, made[0].pk, made[-1].pk))
                assert pages[0] == pages[1], search
                assert rows is odd or bool(pages[0]) == bool(search.subscriptions)

    @staticmethod
    def _subscriptions() -> list[Subscription]:
        return [factories.subscription(), factories.subscription(mode=Mode.PULL)]

    @staticmethod
    def _open() -> list[tuple[Status, dict[str, Any]]]:
        retry = Lane.objects.get(kind=LaneKind.RETRY)
        return [
            (Status.PENDING, {"skipped": True, "attempts": 1}),
            (Status.PENDING, {"lane": retry, "next_attempt_at": NOON}),
            (Status.PENDING, {"next_attempt_at": NOON}),
        ]

    @staticmethod
    def _pages(rows: QuerySet[Message], search: Search, first: int, last: int) -> list[int]:
        """Return the ids of all pages of two messages."""
        found = list[int]()
        while last >= first:
            page = walk_messages(rows, search, first=first, last=last, count=2, seconds=10)
            found += ids(page)
            last = first - 1 if page.reached is None else page.reached - 1
        return found

    def test_a_slow_index_is_left_for_a_walk_through_all_messages(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def times_out(*_: object) -> None:
            raise TimeUpError

        row = factories.delivery(Status.FAILED)
        monkeypatch.setattr(searching, "_newest_ids", times_out)
        assert ids(walked(Search(subscriptions=(row.subscription_id,)))) == [row.message_id]


def sleeping(seconds: float, *, only: Message | None = None) -> QuerySet[Message]:
    """Return messages that take the database so many seconds each, or only one of them."""
    sql, given = "pg_sleep(%s) IS NOT NULL", [seconds]
    if only is not None:
        sql, given = f"(delivery_message.id <> %s OR {sql})", [only.pk, seconds]
    # The SQL is ours.
    return Message.objects.filter(RawSQL(sql, given, output_field=BooleanField()))  # noqa: S611


def reading_by(setting: str) -> QuerySet[Message]:
    """Return messages only if the planner may use indexes ("on") or may not ("off")."""
    sql = "current_setting('enable_indexscan') = %s"
    # The SQL is ours.
    return Message.objects.filter(RawSQL(sql, [setting], output_field=BooleanField()))  # noqa: S611


class TestReadingAhead:
    @pytest.mark.parametrize(
        ("search", "setting"),
        [
            (Search(body="needle"), "off"),
            (Search(header="content"), "off"),
            # Few have the status, and an index finds them.
            (Search(statuses=(Status.FAILED,)), "on"),
            (Search(statuses=(Status.FAILED,), body="needle"), "on"),
        ],
    )
    def test_where_every_message_is_read_the_database_reads_ahead(
        self, search: Search, setting: str
    ) -> None:
        row = factories.delivery(message=factories.message(b"needle"), status=Status.FAILED).message
        first, last = ids_between(None, None)
        found = walk_messages(
            reading_by(setting), search, first=first, last=last, count=10, seconds=10
        )
        assert ids(found) == [row.pk]

    def test_index_scans_are_enabled_again_afterwards(self) -> None:
        row = published(1, b"needle")[0]
        assert ids(walked(Search(body="needle"))) == [row.pk]
        assert reading_by("on").exists()


class TestCostOfAPart:
    HOUR = 3600

    def test_a_search_of_an_hour_is_aborted_and_shows_earlier_finds(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(searching, "FIRST_PART", 2)
        rows = published(9, b"needle")
        found = walk_messages(
            sleeping(self.HOUR, only=rows[3]),
            Search(body="needle"),
            first=rows[0].pk,
            last=rows[-1].pk,
            count=10,
            seconds=2,
        )
        assert not found.is_full
        assert found.reached == found.rows[-1].pk > rows[3].pk
        assert ids(found) == [row.pk for row in reversed(rows) if row.pk >= (found.reached or 0)]

    def test_too_large_a_first_part_is_made_smaller(self) -> None:
        rows = published(searching.FIRST_PART // 10 + 1, b"needle")
        found = walk_messages(
            sleeping(self.HOUR, only=rows[0]),
            Search(body="needle"),
            first=rows[0].pk,
            last=rows[-1].pk,
            count=100,
            seconds=2,
        )
        assert found.rows
        assert found.reached == found.rows[-1].pk > rows[0].pk

    def test_a_scan_makes_progress_even_with_slow_messages(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(searching, "LEAST_SECONDS", 0.01)
        rows = published(5, b"needle")
        found, last, walks = list[int](), rows[-1].pk, 0
        while last >= rows[0].pk:
            part = walk_messages(
                sleeping(0.05),
                Search(body="needle"),
                first=rows[0].pk,
                last=last,
                count=10,
                seconds=0,
            )
            found += ids(part)
            last, walks = (part.reached or 0) - 1, walks + 1
        assert walks == len(rows)
        assert found == [row.pk for row in reversed(rows)]

    def test_conditions_after_a_scan_have_their_full_time(self) -> None:
        published(2)
        walked(Search(body="needle"), seconds=1)
        with connection.cursor() as cursor:
            cursor.execute("SHOW statement_timeout")
            assert cursor.fetchone() == ("0",)
