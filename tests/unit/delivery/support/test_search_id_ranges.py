"""The range of ids of a time, in which a search looks."""

from datetime import timedelta

import pytest

from delivery.models import Message
from delivery.support import search as searching
from delivery.support.search import Search, ids_between, walk_messages
from tests.support import factories
from tests.unit.delivery.support.test_search import NOON

pytestmark = pytest.mark.django_db


class TestRanges:
    def test_the_id_range_of_a_time_covers_all_of_it(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(searching, "SLACK", 0)
        rows = [factories.message(published_at=NOON + timedelta(hours=hour)) for hour in range(5)]
        since, until = NOON + timedelta(hours=1), NOON + timedelta(hours=3)
        first, last = ids_between(since, until)
        assert (first, last) == (rows[1].pk, rows[3].pk)

    def test_the_id_range_includes_messages_slightly_out_of_order(self) -> None:
        late, early = (
            factories.message(published_at=NOON),
            factories.message(published_at=NOON - timedelta(1)),
        )
        first, last = ids_between(NOON - timedelta(hours=1), None)
        assert first <= late.pk < early.pk <= last

    def test_a_future_time_has_no_id_range(self) -> None:
        factories.message(published_at=NOON)
        first, last = ids_between(NOON + timedelta(1), None)
        assert first > last
        found = walk_messages(
            Message.objects.all(), Search(body="x"), first=first, last=last, count=5
        )
        assert (found.rows, found.reached) == ([], None)
