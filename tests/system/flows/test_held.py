"""HELD subscriptions, subscribers and installations: stored, not sent, and released."""

import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.support.product import Flow, StartedSubscription
from tests.support.receivers import OK, Received, Receiver, Slow
from tests.system.operation.installation import eventually

Patch = Callable[[Flow, StartedSubscription, Mapping[str, Any]], Any]


def ids(received: list[Received]) -> list[str]:
    return [request.id for request in received]


def patch_subscription(flow: Flow, of: StartedSubscription, fields: Mapping[str, Any]) -> Any:
    return flow.rest.patch(f"subscriptions/{of.id}", dict(fields))


def patch_subscriber(flow: Flow, of: StartedSubscription, fields: Mapping[str, Any]) -> Any:
    return flow.rest.patch(f"subscribers/{of.subscriber}", dict(fields))


def patch_installation(flow: Flow, _: StartedSubscription, fields: Mapping[str, Any]) -> Any:
    given = {("sending" if name == "status" else name): value for name, value in fields.items()}
    return flow.rest.patch("installation", given)


EACH = [patch_subscription, patch_subscriber, patch_installation]


@pytest.fixture(autouse=True)
def released(flow: Flow) -> Iterator[None]:
    """Release the installation afterwards: other tests use the same product."""
    yield
    flow.rest.patch("installation", {"sending": "ACTIVE"})


@pytest.mark.parametrize("patch", EACH)
def test_what_is_published_while_held_is_received_in_order_after_the_release(
    flow: Flow, receiver: Receiver, patch: Patch
) -> None:
    of = flow.subscribe(receiver.endpoint("a"))
    before = flow.publish_numbered(3)
    of.endpoint.wait_for_count(3)
    patch(flow, of, {"status": "HELD"})
    held = flow.publish_numbered(10)
    assert flow.statuses(of) == ["DELIVERED"] * 3 + ["PENDING"] * 10
    released_at = time.monotonic()
    patch(flow, of, {"status": "ACTIVE"})
    received = of.endpoint.wait_for_count(13)
    assert ids(received) == before + held
    assert received[3].at > released_at


def test_an_inactive_subscriber_receives_nothing_of_what_is_published_meanwhile(
    flow: Flow, receiver: Receiver
) -> None:
    of = flow.subscribe(receiver.endpoint("a"))
    patch_subscriber(flow, of, {"status": "INACTIVE"})
    answer = flow.publisher.publish(flow.event_type, b"{}")
    assert answer["deliveries"] == 0
    patch_subscriber(flow, of, {"status": "ACTIVE"})
    last = flow.publish()
    assert ids(of.endpoint.wait_for_last(last)) == [last]


@pytest.mark.parametrize(
    "patch",
    [patch_subscription, *(pytest.param(patch, marks=pytest.mark.slow) for patch in EACH[1:])],
)
def test_a_hold_takes_effect_in_the_middle_of_a_run(
    flow: Flow, receiver: Receiver, patch: Patch
) -> None:
    of = flow.subscribe(receiver.endpoint("a"))
    of.endpoint.always(Slow(0.05))
    published = flow.publish_numbered(300)
    of.endpoint.wait_for_count(5)
    patch(flow, of, {"status": "HELD"})
    eventually(lambda: flow.lane(of)["state"] == "IDLE", "nothing of it is sent any more")
    count = len(of.endpoint.received)
    assert count < 300
    eventually(
        lambda: flow.statuses(of).count("DELIVERED") == count, "the outcome of the last counts"
    )
    of.endpoint.always(OK)
    patch(flow, of, {"status": "ACTIVE"})
    assert ids(of.endpoint.wait_for_count(300)) == published


@pytest.mark.slow
def test_a_hold_ends_by_itself_at_its_moment(flow: Flow, receiver: Receiver) -> None:
    of = flow.subscribe(receiver.endpoint("a"))
    until = datetime.now(UTC) + timedelta(seconds=2)
    held = patch_subscriber(flow, of, {"status": "HELD", "until": until.isoformat()})
    assert (held["status"], held["until"][:19]) == ("HELD", until.isoformat()[:19])
    id = flow.publish()
    assert ids(of.endpoint.wait_for_last(id)) == [id]
    assert datetime.now(UTC) >= until
    answer = flow.rest.get(f"subscribers/{of.subscriber}")
    assert (answer["status"], answer["until"]) == ("ACTIVE", None)


@pytest.mark.slow
def test_what_was_held_is_sent_at_its_catch_up_rate(flow: Flow, receiver: Receiver) -> None:
    of = flow.subscribe(receiver.endpoint("a"))
    patch_subscription(flow, of, {"status": "HELD", "catch_up_rate": 10})
    published = flow.publish_numbered(21)
    patch_subscription(flow, of, {"status": "ACTIVE"})
    received = of.endpoint.wait_for_count(21)
    assert ids(received) == published
    assert received[-1].at - received[0].at >= 1.8
    eventually(lambda: flow.lane(of)["catch_up_rate"] is None, "the rate ends with what was held")


def test_other_endpoints_of_a_queue_group_take_what_a_held_one_would_have_got(
    flow: Flow, receiver: Receiver
) -> None:
    queue = flow.product.flow(f"{flow.event_type}.Queue", kind="QUEUE")
    held, other = (queue.subscribe(receiver.endpoint(name)) for name in ("held", "other"))
    patch_subscriber(queue, held, {"status": "HELD"})
    published = queue.publish_numbered(20)
    assert sorted(ids(other.endpoint.wait_for_count(20))) == sorted(published)
    assert held.endpoint.received == []
    patch_subscriber(queue, other, {"status": "HELD"})
    last = queue.publish_numbered(5)
    patch_subscriber(queue, held, {"status": "ACTIVE"})
    assert sorted(ids(held.endpoint.wait_for_count(5))) == sorted(last)
    assert len(other.endpoint.received) == 20
