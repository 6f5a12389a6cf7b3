"""Senders presumed frozen by another sender's looks."""

from datetime import UTC, datetime

from delivery.senders.shards.silence import FROZEN_SECONDS, GAP_SECONDS, Silence

MOMENT = datetime(2026, 1, 1, tzinfo=UTC)
ONE, TWO = (1, MOMENT), (2, MOMENT)


def look_until(
    silence: Silence, moment: float, *, begin: float = 0.0
) -> list[tuple[int, datetime]]:
    """Look once a second, the last time at that moment, at a sender that makes no progress."""
    found: list[tuple[int, datetime]] = []
    while begin <= moment:
        found = silence.frozen([ONE], now=begin)
        begin += 1.0
    return found


def test_a_sender_silent_for_too_long_is_frozen() -> None:
    assert look_until(Silence(), FROZEN_SECONDS - 1) == []
    assert look_until(Silence(), FROZEN_SECONDS) == [ONE]


def test_a_sender_that_reported_meanwhile_is_not_frozen() -> None:
    silence = Silence()
    look_until(silence, FROZEN_SECONDS - 1)
    spoke = (1, datetime(2026, 1, 2, tzinfo=UTC))
    assert silence.frozen([spoke, TWO], now=FROZEN_SECONDS) == []


def test_a_checker_that_was_frozen_itself_checks_again() -> None:
    silence = Silence()
    look_until(silence, FROZEN_SECONDS - 1)
    woken = FROZEN_SECONDS + GAP_SECONDS
    assert silence.frozen([ONE], now=woken) == []
    assert look_until(silence, woken + FROZEN_SECONDS, begin=woken + 1) == [ONE]
