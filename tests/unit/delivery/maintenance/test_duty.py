"""A duty is run by one process at a time, and a failed one delays no other."""

import logging
from datetime import UTC, datetime
from functools import partial

import pytest
from django.db import connection

from delivery.maintenance.duty import Duty
from delivery.models import JournalEntry
from tests.races.transactions import unfinished

NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)

pytestmark = pytest.mark.django_db(transaction=True)


def note(now: datetime, *, text: str = "done") -> int:
    JournalEntry.objects.create(kind="RETRIED", text=text, at=now)
    return 1


def noted() -> list[str]:
    return list(JournalEntry.objects.order_by("id").values_list("text", flat=True))


def test_a_duty_gets_the_time_and_returns_its_count() -> None:
    assert Duty("a", note).run_part(NOW) == 1
    assert JournalEntry.objects.get().at == NOW


def test_a_duty_that_is_not_due_does_nothing() -> None:
    assert Duty("a", note, is_due=lambda _: False).run_part(NOW) == 0
    assert noted() == []


def test_a_duty_of_another_process_is_skipped() -> None:
    first, second = Duty("a", partial(note, text="first")), Duty("a", partial(note, text="second"))
    with unfinished(lambda: first.run_part(NOW)):
        assert second.run_part(NOW) == 0
    assert second.run_part(NOW) == 1
    assert noted() == ["first", "second"]


def test_another_duty_runs_meanwhile() -> None:
    with unfinished(lambda: Duty("a", note).run_part(NOW)):
        assert Duty("b", note).run_part(NOW) == 1


def test_a_failed_duty_rolls_back_and_pauses(caplog: pytest.LogCaptureFixture) -> None:
    tries = []

    def fail(now: datetime) -> int:
        note(now)
        tries.append(now)
        raise ZeroDivisionError

    duty = Duty("a", fail)
    with caplog.at_level(logging.ERROR):
        assert [duty.run_part(NOW) for _ in range(3)] == [0, 0, 0]
    assert (len(tries), noted()) == (1, [])
    assert Duty("b", note).run_part(NOW) == 1


def test_a_duty_that_fails_for_days_stops_no_other(caplog: pytest.LogCaptureFixture) -> None:
    def fail(_: datetime) -> int:
        raise ZeroDivisionError

    with caplog.at_level(logging.ERROR):
        assert Duty("a", fail, failures=5000).run_part(NOW) == 0


def test_a_lost_connection_is_replaced(caplog: pytest.LogCaptureFixture) -> None:
    def lose(now: datetime) -> int:
        note(now)
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())")
        return 1

    assert Duty("a", lose).run_part(NOW) == 0
    assert "duty broken off" in caplog.text
    assert Duty("a", note).run_part(NOW) == 1
    assert noted() == ["done"]
