"""A number with its noun is singular or plural."""

import pytest

from subscriptions.values.counts import counted


@pytest.mark.parametrize(
    ("count", "noun", "text"),
    [
        (0, "delivery", "0 deliveries"),
        (1, "delivery", "1 delivery"),
        (2_000, "open delivery", "2,000 open deliveries"),
        (1, "key", "1 key"),
        (2, "key", "2 keys"),
        (3, "message", "3 messages"),
    ],
)
def test_a_number_decides_the_noun(count: int, noun: str, text: str) -> None:
    assert counted(count, noun) == text
