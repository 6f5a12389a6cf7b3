"""Reading Retry-After (RFC 9110, 10.2.3)."""

from datetime import UTC, datetime

import pytest

from delivery.senders.http.reception import retry_after

NOW = datetime(2026, 11, 21, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("120", 120.0),
        (" 0 ", 0.0),
        ("Sat, 21 Nov 2026 12:01:30 GMT", 90.0),
        ("Sat, 21 Nov 2026 11:00:00 GMT", 0.0),
        ("99999999999999999999999999", 999_999_999_999.0),
        ("-1", None),
        ("soon", None),
        ("", None),
        ("1.5", None),
        ("²", None),
        ("Mon, 01 Jan 2024 00:00:00 +99999999999999", None),
        ("Mon, 01 Jan 2024 00:00:00 +9999", None),
        ("Mon, 01 Jan 0001 00:00:00 +2359", 0.0),
        ("Fri, 31 Dec 9999 23:59:59 -2359", 251_607_124_739.0),
        ("Mon, 01 Jan 99999999999 00:00:00 GMT", None),
        ("Mon, 99999999999999999999 Jan 2024 00:00:00 GMT", None),
        ("Mon, 01 Jan 2024 99999999999999999999:00:00 GMT", None),
        ("Mon, 01 Jan 2024 00:00:00 +" + "9" * 5000, None),
        ("a," * 30_000, None),
    ],
)
def test_seconds_and_dates_are_valid_and_other_values_are_ignored(
    value: str, seconds: float | None
) -> None:
    assert retry_after(value, now=NOW) == seconds
