"""Times are read in ISO 8601, in UTC unless they have an offset, and written for people."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from subscriptions.values.times import (
    TimeOutOfRangeError,
    duration,
    largest_unit,
    parse_calculable_time,
    parse_time,
    parse_time_or_none,
    rounded_duration,
    time_text,
    with_plus,
)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("2026-11-01T00:00:00 01:00", "2026-11-01T00:00:00+01:00"),
        ("2026-11-01T00:00 01", "2026-11-01T00:00+01"),
        ("2026-11-01 00:00:00.125 0530", "2026-11-01 00:00:00.125+0530"),
        ("20261101T000000 0100", "20261101T000000+0100"),
    ],
)
def test_the_space_is_read_as_a_plus(typed: str, meant: str) -> None:
    assert with_plus(typed) == meant
    moment = datetime.fromisoformat(meant)
    assert parse_time(typed) == (moment if moment.tzinfo else moment.replace(tzinfo=UTC))


@pytest.mark.parametrize(
    "typed",
    [
        "2026-11-01 00:00:00",
        "2026-11-01 00:00",
        "2026-11-01T00:00:00-01:00",
        "2026-11-01T00:00:00 Z",
        "2026-11-01T00:00:00  01:00",
        "1h",
        "",
    ],
)
def test_other_texts_stay_as_they_are(typed: str) -> None:
    assert with_plus(typed) == typed


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("2026-11-22", datetime(2026, 11, 22, tzinfo=UTC)),
        ("2026-11-22T10:15", datetime(2026, 11, 22, 10, 15, tzinfo=UTC)),
        ("2026-11-22T10:15:00Z", datetime(2026, 11, 22, 10, 15, tzinfo=UTC)),
        ("2026-11-22T10:15:00+01:00", datetime(2026, 11, 22, 9, 15, tzinfo=UTC)),
    ],
)
def test_a_time_is_in_utc_unless_it_has_an_offset(typed: str, meant: datetime) -> None:
    moment = parse_time(typed)
    assert (moment, moment.tzinfo) == (meant, UTC)


@pytest.mark.parametrize(
    "typed",
    [
        "",
        "yesterday",
        "2026-13-01",
        "0001-01-01T00:00+14:00",
        "9999-12-31T23:59-12:00",
        "10000-01-01",
    ],
)
def test_a_time_that_is_none_or_out_of_range_is_refused(typed: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - Python's own or ours
        parse_time(typed)
    assert parse_time_or_none(typed) is None
    assert parse_time_or_none(None) is None


@pytest.mark.parametrize("text", ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "9998-01-01"])
def test_the_ends_of_the_calendar_are_times_without_calculations(text: str) -> None:
    assert parse_time(text).tzinfo is UTC
    with pytest.raises(TimeOutOfRangeError, match=f"^{text} is out of range$"):
        parse_calculable_time(text)
    assert parse_time_or_none(text) is None


def test_a_time_is_written_in_utc() -> None:
    moment = datetime(2026, 8, 2, 10, 15, 3, 999_999, tzinfo=timezone(timedelta(hours=2)))
    assert time_text(moment) == "2026-08-02 08:15:03 UTC"


@pytest.mark.parametrize(
    ("span", "read"),
    [
        (timedelta(0), "0 s"),
        (timedelta(seconds=59.9), "59 s"),
        (timedelta(minutes=1), "1 min"),
        (timedelta(minutes=2, seconds=5), "2 min 5 s"),
        (timedelta(minutes=13, seconds=5), "13 min"),
        (timedelta(hours=2, minutes=5, seconds=9), "2 h 5 min"),
        (timedelta(days=3, hours=4), "3 d 4 h"),
        (timedelta(days=30, hours=4), "30 d"),
        (timedelta(seconds=-5), "0 s"),
    ],
)
def test_a_span_is_as_exact_as_needed(span: timedelta, read: str) -> None:
    assert duration(span) == read


def test_a_large_span_has_one_unit() -> None:
    spans = (timedelta(seconds=59), timedelta(minutes=5, seconds=17), timedelta(hours=2, minutes=5))
    assert [largest_unit(span) for span in spans] == ["59 s", "5 min", "2 h"]


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.5, "0.5 s"),
        (84.8, "85 s"),
        (120, "2 min"),
        (5342.4, "89 min"),
        (7200, "2 h"),
        (173_590, "48 h"),
        (864_000, "10 d"),
    ],
)
def test_a_rounded_duration_has_one_suitable_unit(seconds: float, words: str) -> None:
    assert rounded_duration(seconds) == words
