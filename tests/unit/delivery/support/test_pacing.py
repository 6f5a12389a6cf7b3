"""A bulk job keeps its pace: one second's share at a time, and no catching up after a stop."""

from datetime import UTC, datetime, timedelta

import pytest

from delivery.support.pacing import batch_size, due_after

DUE = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("rate", "size"), [(None, 500), (0.01, 1), (1.0, 1), (40.0, 40), (9_000.0, 500)]
)
def test_a_batch_is_a_seconds_worth(rate: float | None, size: int) -> None:
    assert batch_size(rate, most=500) == size


def test_the_next_is_due_when_the_rate_allows_it() -> None:
    assert due_after(DUE, done=10, rate=10.0, now=DUE) == DUE + timedelta(seconds=1)
    assert due_after(DUE, done=1, rate=0.1, now=DUE) == DUE + timedelta(seconds=10)


def test_without_a_rate_the_next_batch_is_due_at_once() -> None:
    now = DUE + timedelta(hours=1)
    assert due_after(DUE, done=500, rate=None, now=now) == now


def test_a_late_batch_is_caught_up() -> None:
    now = DUE + timedelta(seconds=0.5)
    assert due_after(DUE, done=10, rate=10.0, now=now) == DUE + timedelta(seconds=1)


def test_a_long_stop_is_not_caught_up() -> None:
    now = DUE + timedelta(hours=1)
    assert due_after(DUE, done=10, rate=10.0, now=now) == now
