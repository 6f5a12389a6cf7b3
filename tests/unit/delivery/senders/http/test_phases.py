"""The phase `queue` of an attempt, for its trace."""

from delivery.senders.clock import seconds_since_boot
from delivery.senders.http.phases import Phases

SECONDS = 60.0


def test_the_queue_lasts_from_the_moment_that_it_is_due_to_the_start() -> None:
    due_at = seconds_since_boot() - SECONDS
    queued = Phases(due_at=due_at).seconds()["queue"]
    assert SECONDS <= queued <= seconds_since_boot() - due_at


def test_it_is_never_negative() -> None:
    assert Phases(due_at=seconds_since_boot() + SECONDS).seconds() == {"queue": 0.0}


def test_it_is_left_out_if_the_moment_is_not_known() -> None:
    assert Phases(due_at=None).seconds() == {}
