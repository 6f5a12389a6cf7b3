"""The cell that says how a thing stands: the state, and below it the cause and the age."""

from datetime import UTC, datetime, timedelta

import pytest
from django.utils.html import strip_tags

from delivery.console.shared.state_cell import state_cell
from delivery.standing.vocabulary import Cause, Holder, Standing, State

NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("holder", "of_subscription", "of_subscriber"),
    [
        (Holder.SUBSCRIPTION, "for 2 min", "its subscriptions for 2 min"),
        (Holder.SUBSCRIBER, "its subscriber for 2 min", "for 2 min"),
        (Holder.INSTALLATION, "all sending for 2 min", "all sending for 2 min"),
    ],
)
def test_a_hold_is_said_of_the_object_that_a_person_held(
    holder: Holder, of_subscription: str, of_subscriber: str
) -> None:
    since = NOW - timedelta(minutes=2)
    standing = Standing(state=State.HELD, cause=Cause.HELD, holder=holder, since=since)
    for is_of_subscription, below in ((True, of_subscription), (False, of_subscriber)):
        cell = state_cell(standing, now=NOW, is_of_subscription=is_of_subscription)
        assert strip_tags(cell) == f"HELD{below}"


def test_a_quiet_thing_has_no_second_line() -> None:
    assert strip_tags(state_cell(Standing(), now=NOW)) == "QUIET"
