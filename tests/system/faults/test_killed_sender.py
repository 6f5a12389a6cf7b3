"""A sender is killed -9, in each of its crash windows.

read ─▶ record the run ─▶ send ─▶ answer ─▶ commit ─▶ send the next …
     1                 2       3         4
"""

import time

import pytest

from tests.support.product import Flow
from tests.support.receivers import OK, Hold, Receiver, Slow
from tests.system.faults.observed import Observed
from tests.system.faults.promises import FLOWS_AGAIN_SECONDS, insist, outcomes, resent
from tests.system.operation.installation import eventually, kill


def test_a_kill_before_the_run_is_recorded_sends_nothing(
    flow: Flow, receiver: Receiver, observed: Observed
) -> None:
    of = flow.subscribe(receiver.endpoint("a"))
    with observed.locked("delivery_lane", observed.lane_id(of)) as lock:
        published = flow.publish_numbered(3)
        observed.terminate(lock.kill_who_waits())
        assert of.endpoint.received == []
    received = of.endpoint.wait_for_count(3)
    assert [request.id for request in received] == published
    assert [request.redelivery for request in received] == [None] * 3
    insist(flow, of, published, crashes=0)


def test_killed_after_the_run_is_recorded_the_first_is_in_doubt_though_it_was_not_sent(
    flow: Flow, receiver: Receiver, observed: Observed
) -> None:
    of = flow.subscribe(receiver.endpoint("a"))
    with observed.locked("delivery_lane", observed.lane_id(of)) as lock:
        published = flow.publish_numbered(3)
        # Its backend continues and commits the statement, with no process left to send.
        lock.kill_who_commits()
    received = of.endpoint.wait_for_count(3)
    assert [(request.id, request.attempt) for request in received] == list(
        zip(published, [2, 1, 1], strict=True)
    )
    assert [request.redelivery for request in received] == ["in-doubt", None, None]
    assert outcomes(flow, of, published[0]) == ["LOST", "SUCCESS"]
    insist(flow, of, published, crashes=0)


def test_killed_between_send_and_answer_that_one_is_sent_again(
    flow: Flow, receiver: Receiver, observed: Observed
) -> None:
    of = flow.subscribe(receiver.endpoint("a"))
    hold = Hold()
    of.endpoint.next(OK, hold)
    published = flow.publish_numbered(4)
    of.endpoint.wait_for_count(2)
    kill(observed.sender_of(of))
    received = of.endpoint.wait_for_count(5)
    hold.release()
    assert [request.id for request in received] == [published[n] for n in (0, 1, 1, 2, 3)]
    assert [request.attempt for request in received] == [1, 1, 2, 1, 1]
    assert [request.redelivery for request in received] == [None, None, "in-doubt", None, None]
    assert outcomes(flow, of, published[1]) == ["LOST", "SUCCESS"]
    insist(flow, of, published)


def test_killed_between_answer_and_commit_that_one_is_sent_again(
    flow: Flow, receiver: Receiver, observed: Observed
) -> None:
    of = flow.subscribe(receiver.endpoint("a"))
    hold = Hold()
    of.endpoint.next(hold)
    published = flow.publish_numbered(3)
    of.endpoint.wait_for_count(1)
    with observed.locked("delivery_delivery", flow.delivery(of, published[0])["id"]) as lock:
        hold.release()
        observed.terminate(lock.kill_who_waits())
    received = of.endpoint.wait_for_count(4)
    assert [request.id for request in received] == [published[n] for n in (0, 0, 1, 2)]
    assert received[1].redelivery == "in-doubt"
    assert outcomes(flow, of, published[0]) == ["LOST", "SUCCESS"]
    insist(flow, of, published)


def test_killed_after_the_commit_was_sent_it_is_not_sent_again(
    flow: Flow, receiver: Receiver, observed: Observed
) -> None:
    of = flow.subscribe(receiver.endpoint("a"))
    hold = Hold()
    of.endpoint.next(hold)
    published = flow.publish_numbered(3)
    of.endpoint.wait_for_count(1)
    with observed.locked("delivery_delivery", flow.delivery(of, published[0])["id"]) as lock:
        hold.release()
        # Its backend continues and commits the outcome.
        lock.kill_who_waits()
    received = of.endpoint.wait_for_count(3)
    assert [request.id for request in received] == published
    assert outcomes(flow, of, published[0]) == ["SUCCESS"]
    # The next delivery of the run was not sent, but no record says so.
    assert outcomes(flow, of, published[1]) == ["LOST", "SUCCESS"]
    insist(flow, of, published, crashes=0)


def test_under_hold_a_delivery_in_doubt_waits_for_a_person_while_the_lane_continues(
    flow: Flow, receiver: Receiver, observed: Observed
) -> None:
    of = flow.subscribe(receiver.endpoint("a"), policy="strict")
    hold = Hold()
    of.endpoint.next(hold)
    published = flow.publish_numbered(3)
    of.endpoint.wait_for_count(1)
    kill(observed.sender_of(of))
    received = of.endpoint.wait_for_count(3)
    hold.release()
    assert [request.id for request in received] == published
    assert [request.redelivery for request in received] == [None] * 3
    assert flow.wait_until_settled(of) == ["IN_DOUBT", "DELIVERED", "DELIVERED"]
    assert outcomes(flow, of, published[0]) == ["LOST"]


@pytest.mark.slow
def test_the_lanes_of_a_killed_sender_flow_again_soon(
    flow: Flow, receiver: Receiver, observed: Observed, capsys: pytest.CaptureFixture[str]
) -> None:
    lanes = [flow.subscribe(receiver.endpoint(f"lane-{number}")) for number in range(8)]
    for of in lanes:
        of.endpoint.always(Slow(0.01))
    published = flow.publish_numbered(600)
    for of in lanes:
        of.endpoint.wait_for_count(20)
    killed = observed.sender_of(lanes[0])
    orphaned = [of for of in lanes if observed.sender_of(of) == killed]
    kill(killed)
    killed_at = time.monotonic()
    # A request in flight when the sender died may still arrive just after.
    pauses = [of.endpoint.wait_for_later(killed_at + 0.05).at - killed_at for of in orphaned]
    with capsys.disabled():
        print(f"\n{len(orphaned)} lanes of a killed sender flow again after {max(pauses):.2f} s")
    assert max(pauses) < FLOWS_AGAIN_SECONDS
    for of in lanes:
        of.endpoint.always(OK)
    for of in lanes:
        insist(flow, of, published, crashes=1 if of in orphaned else 0)


@pytest.mark.slow
def test_repeatedly_killed_senders_lose_no_message(
    flow: Flow, receiver: Receiver, observed: Observed
) -> None:
    lanes = [flow.subscribe(receiver.endpoint(f"lane-{number}")) for number in range(4)]
    for of in lanes:
        of.endpoint.always(Slow(0.005))
    published = flow.publish_numbered(400)
    crashes = 0
    for count in (50, 150, 250):
        lanes[0].endpoint.wait_for_count(count)
        eventually(observed.senders, "a sender is at work")
        kill(*observed.senders())
        crashes += 1
    for of in lanes:
        of.endpoint.wait_for_count(len(published), seconds=60)
        insist(flow, of, published, crashes=crashes)
    assert sum(len(resent(of.endpoint.received)) for of in lanes) <= crashes * len(lanes)
