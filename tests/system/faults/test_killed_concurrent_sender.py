"""The sender of a CONCURRENT subscriber's lane is killed -9: only attempts in flight are in doubt.

choose ─▶ record the attempts in flight ─▶ send ─▶ answer ─▶ commit
       1                                2       3         4
"""

import secrets
from collections import Counter

import pytest

from tests.support.product import Flow, Product, StartedSubscription
from tests.support.receivers import OK, Close, Hold, Receiver
from tests.system.faults.observed import Observed
from tests.system.faults.promises import outcomes, resent
from tests.system.flows.test_retries import policy_like
from tests.system.operation.installation import eventually, kill

MOST = 4


@pytest.fixture
def of(flow: Flow, receiver: Receiver) -> StartedSubscription:
    name = f"hook-{secrets.token_hex(4)}"
    owner = flow.subscriber(name, processing="CONCURRENT", max_in_flight=MOST)
    return flow.subscribe(receiver.endpoint(name), subscriber=owner)


def insist(flow: Flow, of: StartedSubscription, ids: list[str], *, doubtful: set[str]) -> None:
    """Check that all arrived; those in flight came twice, then marked and with history."""
    assert set(flow.wait_until_settled(of)) == {"DELIVERED"}
    received = of.endpoint.received
    assert Counter(request.id for request in received) == Counter([*ids, *doubtful])
    assert {request.redelivery for request in resent(received)} <= {"in-doubt"}
    for message in doubtful:
        assert outcomes(flow, of, message) == ["LOST", "SUCCESS"]


def test_a_kill_between_send_and_answer_resends_only_attempts_in_flight(
    flow: Flow, of: StartedSubscription, observed: Observed
) -> None:
    hold = Hold()
    of.endpoint.always(hold)
    ids = flow.publish_numbered(20)
    doubtful = {request.id for request in of.endpoint.wait_for_count(MOST)}
    of.endpoint.always(OK)
    kill(observed.sender_of(of))
    of.endpoint.wait_for_count(20 + MOST)
    hold.release()
    assert doubtful == set(ids[:MOST])
    insist(flow, of, ids, doubtful=doubtful)


def test_a_kill_before_the_run_is_recorded_sends_nothing(
    flow: Flow, of: StartedSubscription, observed: Observed
) -> None:
    with observed.locked("delivery_lane", observed.lane_id(of)) as lock:
        ids = flow.publish_numbered(8)
        observed.terminate(lock.kill_who_waits())
        assert of.endpoint.received == []
    insist(flow, of, ids, doubtful=set())


def test_killed_between_answer_and_commit_only_that_one_is_sent_again(
    flow: Flow, of: StartedSubscription, observed: Observed
) -> None:
    hold = Hold()
    of.endpoint.next(hold)
    message = flow.publish()
    (request,) = of.endpoint.wait_for_count(1)
    with observed.locked("delivery_delivery", request.delivery) as lock:
        hold.release()
        observed.terminate(lock.kill_who_waits())
    of.endpoint.wait_for_count(2)
    insist(flow, of, [message], doubtful={message})


@pytest.mark.slow
def test_a_lane_made_serial_while_unserved_has_its_attempts_in_flight_in_doubt(
    flow: Flow, of: StartedSubscription, product: Product
) -> None:
    """The recorded run keeps its mode; the subscriber's new mode concerns later runs."""
    hold = Hold()
    of.endpoint.always(hold)
    ids = flow.publish_numbered(20)
    doubtful = {request.id for request in of.endpoint.wait_for_count(MOST)}
    of.endpoint.always(OK)
    kill(*product.whole("cluster"))
    flow.rest.patch(f"subscribers/{of.subscriber}", {"processing": "SERIAL"})
    received = of.endpoint.wait_for_count(20 + MOST, seconds=60)
    hold.release()
    assert [request.id for request in received[MOST:]] == ids
    insist(flow, of, ids, doubtful=doubtful)


@pytest.mark.slow
def test_killed_while_something_settled_blocks_the_lane_it_flows_on_after_its_pause(
    product: Product, receiver: Receiver, observed: Observed
) -> None:
    """The lane has no waiting delivery, so only its state BLOCKED requires a sender."""
    flow = product.flow("Volatile", durability="VOLATILE")
    policy = policy_like(product, "teamforge", pause_seconds=5, pause_max_seconds=5)
    name = f"hook-{secrets.token_hex(4)}"
    owner = flow.subscriber(name, processing="CONCURRENT", max_in_flight=MOST)
    of = flow.subscribe(receiver.endpoint(name), subscriber=owner, policy=policy)
    of.endpoint.next(Close())
    flow.publish()
    flow.wait_until_blocked(of)
    kill(observed.sender_of(of))
    assert flow.statuses(of) == ["FAILED"]
    eventually(lambda: flow.lane(of)["state"] != "BLOCKED", "nothing stops it any more")
