"""A sender frozen by SIGSTOP: others take its lanes, and it stays away from them afterwards."""

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from config.up import processes
from tests.support.product import Flow
from tests.support.receivers import OK, Hold, Receiver
from tests.system.faults.observed import Observed
from tests.system.faults.promises import insist, outcomes
from tests.system.operation.installation import eventually, stop

# Promised are 10 s; a loaded machine gets some grace.
TAKEN_OVER_SECONDS = 30.0


@contextmanager
def frozen(pid: int) -> Iterator[None]:
    stop(pid)
    try:
        yield
    finally:
        processes.send_signal(signal.SIGCONT, [pid])


def test_another_sender_takes_over_the_lanes_of_a_frozen_one(
    flow: Flow, receiver: Receiver, observed: Observed, capsys: pytest.CaptureFixture[str]
) -> None:
    lanes = [flow.subscribe(receiver.endpoint(f"lane-{number}")) for number in range(5)]
    holds = [Hold() for _ in lanes]
    for of, hold in zip(lanes, holds, strict=True):
        of.endpoint.next(OK, hold)
    published = flow.publish_numbered(10)
    for of in lanes:
        of.endpoint.wait_for_count(2)
    pid = observed.sender_of(lanes[0])
    with frozen(pid):
        since = time.monotonic()
        last = max(of.endpoint.wait_for_count(11, seconds=TAKEN_OVER_SECONDS)[2].at for of in lanes)
        with capsys.disabled():
            print(f"\nthe lanes of a frozen sender flow again after {last - since:.2f} s")
        for of in lanes:
            flow.wait_until_settled(of)
    # The woken sender gets its answers, and may commit none of them.
    for hold in holds:
        hold.release()
    eventually(lambda: pid in observed.senders(), "the frozen one is at work again")
    later = flow.publish_numbered(3)
    for of in lanes:
        received = of.endpoint.wait_for_last(later[-1])
        assert [request.id for request in received] == [*published[:2], *published[1:], *later]
        assert outcomes(flow, of, published[1]) == ["LOST", "SUCCESS"]
        insist(flow, of, [*published, *later])


@pytest.mark.slow
def test_under_hold_a_delivery_in_flight_waits_for_a_person(
    flow: Flow, receiver: Receiver, observed: Observed
) -> None:
    of, hold = flow.subscribe(receiver.endpoint("a"), policy="strict"), Hold()
    of.endpoint.next(hold)
    published = flow.publish_numbered(3)
    of.endpoint.wait_for_count(1)
    pid = observed.sender_of(of)
    with frozen(pid):
        received = of.endpoint.wait_for_count(3, seconds=TAKEN_OVER_SECONDS)
        assert flow.wait_until_settled(of) == ["IN_DOUBT", "DELIVERED", "DELIVERED"]
    hold.release()
    eventually(lambda: pid in observed.senders(), "the frozen one is at work again")
    assert [request.id for request in received] == published
    assert outcomes(flow, of, published[0]) == ["LOST"]
