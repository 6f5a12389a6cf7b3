"""Messages are found by texts and statuses: walked from the newest, in parts, for as long as it may take."""

from datetime import UTC, datetime, timedelta

import pytest

from delivery import searching
from delivery.models import Message, Status
from delivery.searching import Search, Walked, ids_between, walk
from tests import factories

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)

pytestmark = pytest.mark.django_db


def published(count: int, body: bytes = b"{}", **fields: object) -> list[Message]:
    event_type = factories.event_type()
    return [factories.message(body, event_type=event_type, **fields) for _ in range(count)]


def walked(search: Search, *, count: int = 10, seconds: float = 10) -> Walked:
    first, last = ids_between(None, None)
    return walk(Message.objects.all(), search, first=first, last=last, count=count, seconds=seconds)


def ids(found: Walked) -> list[int]:
    return [row.pk for row in found.rows]


class TestWhatIsFound:
    def test_a_text_within_the_body_exactly_so(self) -> None:
        wanted, _ = factories.message("Größe 'XL' %_ \\".encode()), factories.message()
        for text in ("Größe", "'XL'", "%_", "\\", "e 'X"):
            assert ids(walked(Search(body=text))) == [wanted.pk], text
        for text in ("größe", "XXL", "G_öße"):
            assert ids(walked(Search(body=text))) == [], text

    def test_a_text_within_a_body_that_is_no_text(self) -> None:
        wanted = factories.message(b"\xff\x00needle\xfe")
        assert ids(walked(Search(body="needle"))) == [wanted.pk]

    def test_a_header_by_its_name_or_its_value_or_both_in_any_case(self) -> None:
        wanted, _ = factories.message(headers={"x-trace": "Abc-1"}), factories.message(headers={"y": "abc"})
        for text in ("X-Trace", "x-trace: abc", "TRACE: ABC-1", "bc-1"):
            assert ids(walked(Search(header=text))) == [wanted.pk], text
        assert ids(walked(Search(header="x-trace: abc-2"))) == []

    def test_those_with_a_delivery_of_a_status(self) -> None:
        rows = {status: factories.delivery(status) for status in Status}
        for status, row in rows.items():
            assert ids(walked(Search(status=status))) == [row.message_id]

    def test_what_has_all_that_is_looked_for(self) -> None:
        row = factories.delivery(Status.REJECTED, message=factories.message(b"needle", headers={"a": "b"}))
        factories.delivery(Status.REJECTED)
        factories.message(b"needle")
        assert ids(walked(Search(body="needle", header="a: b", status="REJECTED"))) == [row.message_id]


class TestHowFar:
    def test_a_full_page_ends_it_and_the_next_begins_below(self) -> None:
        rows = published(5, b"needle")
        first = walked(Search(body="needle"), count=2)
        assert (ids(first), first.is_full) == ([rows[4].pk, rows[3].pk], True)
        rest = walk(
            Message.objects.all(),
            Search(body="needle"),
            first=0,
            last=(first.reached or 0) - 1,
            count=10,
        )
        assert (ids(rest), rest.reached) == ([row.pk for row in rows[2::-1]], None)

    def test_when_its_time_is_up_it_says_how_far_it_got_and_always_got_on(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(searching, "FIRST_PART", 2)
        rows = published(6, b"needle")
        found, last, walks = list[int](), rows[-1].pk, 0
        while last > 0:
            part = walk(
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

    def test_every_id_is_looked_at_once_however_the_parts_grow(self, monkeypatch: pytest.MonkeyPatch) -> None:
        rows = published(12, b"needle")
        for size in (1, 2, 5, 100):
            monkeypatch.setattr(searching, "FIRST_PART", size)
            assert ids(walked(Search(body="needle"), count=50)) == [row.pk for row in reversed(rows)]


class TestRanges:
    def test_ids_of_a_time_leave_out_none_of_it(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(searching, "SLACK", 0)
        rows = [factories.message(published_at=NOON + timedelta(hours=hour)) for hour in range(5)]
        since, until = NOON + timedelta(hours=1), NOON + timedelta(hours=3)
        first, last = ids_between(since, until)
        assert (first, last) == (rows[1].pk, rows[3].pk)

    def test_what_was_published_a_little_out_of_turn_is_in_it(self) -> None:
        late, early = (
            factories.message(published_at=NOON),
            factories.message(published_at=NOON - timedelta(1)),
        )
        first, last = ids_between(NOON - timedelta(hours=1), None)
        assert first <= late.pk < early.pk <= last

    def test_a_time_that_has_not_come_has_none(self) -> None:
        factories.message(published_at=NOON)
        first, last = ids_between(NOON + timedelta(1), None)
        assert first > last
        found = walk(Message.objects.all(), Search(body="x"), first=first, last=last, count=5)
        assert (found.rows, found.reached) == ([], None)
