"""Counting for the limit of a publisher's rate."""

from delivery.incoming.rate_limit import Bucket, bucket_of


class FixedClock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_period_full_is_there_at_once_and_then_as_it_fills() -> None:
    clock = FixedClock()
    bucket = Bucket(10, 60, clock)
    assert [bucket.wait_seconds(1, messages=1) for _ in range(10)] == [0] * 10
    assert bucket.wait_seconds(1, messages=1) == 6
    assert bucket.wait_seconds(2, messages=1) == 0
    clock.now = 6.0
    assert bucket.wait_seconds(1, messages=1) == 0
    assert bucket.wait_seconds(1, messages=1) == 6


def test_no_batch_is_too_large_but_the_next_waits_for_it() -> None:
    clock = FixedClock()
    bucket = Bucket(10, 1, clock)
    assert bucket.wait_seconds(1, messages=100) == 0
    assert bucket.wait_seconds(1, messages=1) == 10
    clock.now = 9.2
    assert bucket.wait_seconds(1, messages=1) == 0


def test_without_a_limit_nothing_is_refused() -> None:
    assert bucket_of("") is None
