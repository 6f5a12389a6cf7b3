"""A space where the plus of an offset belongs, as in addresses whose plus is not encoded."""

from datetime import datetime

import pytest

from subscriptions.values.moments import parse_moment, with_plus


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
    assert parse_moment(typed) == datetime.fromisoformat(meant)


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
