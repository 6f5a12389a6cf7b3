"""Chores: a long duty does not delay failure notices."""

from datetime import datetime
from threading import Event

import pytest

from delivery.cluster.stop_event import stopping
from delivery.maintenance import loop
from delivery.maintenance.duty import Duty

pytestmark = pytest.mark.django_db(transaction=True)

# A longer wait would never end.
SECONDS = 10


def test_a_replay_waiting_for_its_archive_does_not_delay_failure_reports(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waits, reported, met = Event(), Event(), []

    def wait_for_the_archive(_now: datetime) -> int:
        waits.set()
        met.append(reported.wait(SECONDS))
        stopping.set()
        return 0

    def report(_now: datetime) -> int:
        if waits.wait(SECONDS):
            reported.set()
        return 0

    duties = {"replays": wait_for_the_archive, "failures": report}
    for name in ("SLOW", "QUICK"):
        given = tuple(
            Duty(duty.name, duties.get(duty.name, lambda _now: 0)) for duty in getattr(loop, name)
        )
        monkeypatch.setattr(loop, name, given)
    try:
        loop.run_chores()
    finally:
        stopping.clear()
    assert all(met)
    assert reported.is_set()
