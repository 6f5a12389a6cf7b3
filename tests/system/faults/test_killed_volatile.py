"""VOLATILE messages and kill -9: each is sent at most once, and delays no guaranteed one."""

import secrets
from collections import Counter

import pytest

from tests.support.product import Flow, Product, StartedSubscription
from tests.support.receivers import OK, Hold, Receiver
from tests.system.faults.observed import Observed
from tests.system.operation.installation import eventually, kill


@pytest.fixture
def volatile(product: Product) -> Flow:
    return product.flow("VolatileFault", durability="VOLATILE")


@pytest.fixture(params=["SERIAL", pytest.param("CONCURRENT", marks=pytest.mark.slow)])
def owner(request: pytest.FixtureRequest, flow: Flow) -> str:
    return flow.subscriber(secrets.token_hex(4), processing=request.param, max_in_flight=2)


def subscribe(flow: Flow, receiver: Receiver, owner: str) -> StartedSubscription:
    return flow.subscribe(receiver.endpoint(f"hook-{secrets.token_hex(4)}"), subscriber=owner)


def sent(of: StartedSubscription) -> Counter[str]:
    """Return how often each message came."""
    return Counter(request.id for request in of.endpoint.received)


def wait_until_none_is_pending(flow: Flow, of: StartedSubscription) -> set[str]:
    """Wait until all are settled or removed; removed deliveries have no status."""
    return set(flow.wait_until_settled(of))


@pytest.mark.slow
def test_after_everything_was_killed_guaranteed_ones_arrive_and_volatile_ones_are_dropped(
    flow: Flow, volatile: Flow, product: Product, receiver: Receiver, owner: str
) -> None:
    keeping, losing = subscribe(flow, receiver, owner), subscribe(volatile, receiver, owner)
    hold = Hold()
    keeping.endpoint.always(hold)
    losing.endpoint.always(hold)
    kept = flow.publish_numbered(20)
    keeping.endpoint.wait_for_count(1)
    volatile.publish_numbered(20)
    before = sent(losing)
    product.kill_all()
    keeping.endpoint.always(OK)
    losing.endpoint.always(OK)
    hold.release()
    product.start()
    assert set(flow.wait_until_settled(keeping)) == {"DELIVERED"}
    assert set(sent(keeping)) == set(kept)
    assert wait_until_none_is_pending(volatile, losing) <= {"EXPIRED"}
    # Attempts in flight were not repeated, and the other deliveries not sent at all.
    assert sent(losing) == before
    assert set(before.values()) <= {1}


def test_a_volatile_delivery_in_flight_is_dropped_when_its_sender_is_killed(
    volatile: Flow, receiver: Receiver, owner: str, observed: Observed
) -> None:
    of, hold = subscribe(volatile, receiver, owner), Hold()
    of.endpoint.next(hold)
    message = volatile.publish()
    of.endpoint.wait_for_count(1)
    kill(observed.sender_of(of))
    assert volatile.wait_until_settled(of) == ["EXPIRED"]
    hold.release()
    (attempt,) = volatile.delivery(of, message)["attempts"]
    assert attempt["outcome"] == "LOST"
    following = volatile.publish()
    assert volatile.wait_until_settled(of) == ["EXPIRED", "DELIVERED"]
    assert sent(of) == Counter([message, following])


def test_volatile_deliveries_read_and_unsent_are_dropped_when_postgresql_is_killed(
    flow: Flow, volatile: Flow, product: Product, receiver: Receiver, owner: str, observed: Observed
) -> None:
    """The sender survives with the deliveries in memory; sent ones get their outcomes."""
    of, hold = subscribe(volatile, receiver, owner), Hold()
    of.endpoint.always(hold)
    ids = volatile.publish_numbered(20)
    of.endpoint.wait_for_count(1)
    eventually(lambda: len(observed.run_of(of)) > 0, "the run is on disk")
    under_way = {request.id for request in of.endpoint.received}
    kill(product.postmaster())
    eventually(observed.is_well, "the database is back")
    of.endpoint.always(OK)
    hold.release()
    assert wait_until_none_is_pending(volatile, of) == {"DELIVERED", "EXPIRED"}
    delivered = {
        message for message in ids if volatile.delivery(of, message)["status"] == "DELIVERED"
    }
    assert delivered == set(sent(of))
    assert under_way <= delivered
    assert set(sent(of).values()) == {1}
