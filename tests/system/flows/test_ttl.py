"""Times to live in the started product: overdue deliveries are not sent, sent ones not EXPIRED."""

import secrets

import pytest

from tests.support.product import Flow, Product, StartedSubscription
from tests.support.receivers import Close, Hold, Receiver
from tests.support.rest import Json
from tests.system.flows.test_concurrent import subscribe
from tests.system.flows.test_retries import policy_like
from tests.system.operation.installation import eventually

LONG_PAUSE = {"pause_seconds": 600, "pause_max_seconds": 600}


@pytest.fixture
def flow(product: Product) -> Flow:
    """An event type whose TTL is longer than any test."""
    return product.flow("Ttl", ttl_seconds=600)


@pytest.fixture
def brief(product: Product) -> Flow:
    """An event type whose messages are sent within their TTL, and outlived by its test."""
    return product.flow("Brief", ttl_seconds=4)


def expire(flow: Flow, *of: StartedSubscription) -> None:
    """End the TTL of all open deliveries of these subscriptions."""
    with flow.product.connect() as connection:
        connection.execute(
            "UPDATE delivery_delivery SET expires_at = now()"
            " WHERE status = 'PENDING' AND subscription_id = ANY (%s)",
            [[subscribed.id for subscribed in of]],
        )


def reported(flow: Flow, of: StartedSubscription) -> list[Json]:
    """Return the journal's entries about that subscription."""
    with flow.product.connect() as connection:
        rows = connection.execute(
            "SELECT kind, text FROM delivery_journalentry WHERE subscription_id = %s", [of.id]
        ).fetchall()
    return [{"kind": kind, "text": text} for kind, text in rows]


def blocked(flow: Flow, receiver: Receiver) -> StartedSubscription:
    """Create a subscription whose lane pauses for minutes."""
    policy = policy_like(flow.product, "teamforge", **LONG_PAUSE)
    of = flow.subscribe(receiver.endpoint(f"hook-{secrets.token_hex(4)}"), policy=policy)
    of.endpoint.next(Close())
    return of


def test_an_undelivered_message_expires_and_is_reported(brief: Flow, receiver: Receiver) -> None:
    of, listening = blocked(brief, receiver), receiver.endpoint("failures")
    fields = {"name": "failures", "endpoint": listening.url, "event_type": "Inturn.Delivery.Failed"}
    owner = brief.subscriber("operator")
    brief.rest.post(
        "subscriptions", fields | {"subscriber": owner, "header_filter_string": of.subscriber}
    )
    message = brief.publish()
    assert brief.wait_until_settled(of) == ["EXPIRED"]
    delivery = brief.delivery(of, message)
    assert delivery["reason"] == "not delivered within its time to live of 4 s"
    (request,) = listening.wait_for_count(1)
    assert b'"status":"EXPIRED"' in request.body
    assert b'"outcome":"UNREACHABLE"' in request.body
    assert len(of.endpoint.received) == 1


def test_a_lane_that_it_blocked_flows_on_at_once(
    product: Product, flow: Flow, receiver: Receiver
) -> None:
    of, lasting = blocked(flow, receiver), product.flow("Lasting")
    also = lasting.subscribe(receiver.endpoint("also"), subscriber=of.subscriber)
    flow.publish_numbered(10)
    flow.wait_until_blocked(of)
    lasting.publish()
    expire(flow, of)
    assert lasting.wait_until_settled(also) == ["DELIVERED"]
    assert set(flow.wait_until_settled(of)) == {"EXPIRED"}
    entries = [entry["text"] for entry in reported(flow, of) if entry["kind"] == "EXPIRED"]
    assert len(entries) == 1
    assert entries[0].startswith("10 deliveries of ")


@pytest.mark.slow
def test_a_concurrent_subscribers_lane_that_it_blocked_flows_on_too(
    flow: Flow, product: Product, receiver: Receiver
) -> None:
    of = subscribe(flow, receiver, policy=policy_like(product, "teamforge", **LONG_PAUSE))
    of.endpoint.next(Close())
    flow.publish()
    flow.wait_until_blocked(of)
    expire(flow, of)
    eventually(lambda: flow.lane(of)["state"] != "BLOCKED", "nothing stops it any more")
    flow.publish()
    assert flow.wait_until_settled(of) == ["EXPIRED", "DELIVERED"]


@pytest.mark.parametrize(
    "processing", ["SERIAL", pytest.param("CONCURRENT", marks=pytest.mark.slow)]
)
def test_an_attempt_running_when_the_ttl_ends_counts(
    flow: Flow, receiver: Receiver, processing: str
) -> None:
    of, other = subscribe(flow, receiver, processing=processing), blocked(flow, receiver)
    hold = Hold()
    of.endpoint.next(hold)
    flow.publish()
    of.endpoint.wait_for_count(1)
    flow.wait_until_blocked(other)
    expire(flow, of, other)
    assert flow.wait_until_settled(other) == ["EXPIRED"]
    assert flow.statuses(of) == ["PENDING"]
    hold.release()
    assert flow.wait_until_settled(of) == ["DELIVERED"]


@pytest.mark.parametrize("most", [None, pytest.param(1, marks=pytest.mark.slow)])
def test_a_message_that_expires_behind_a_slow_one_is_never_sent(
    brief: Flow, receiver: Receiver, most: int | None
) -> None:
    """Its sender has read it long before: it drops the delivery, which then expires."""
    how: dict[str, object] = {"processing": "SERIAL"} if most is None else {"max_in_flight": most}
    of, other, hold = subscribe(brief, receiver, **how), blocked(brief, receiver), Hold()
    of.endpoint.next(hold)
    ids = brief.publish_numbered(20)
    of.endpoint.wait_for_count(1)
    assert set(brief.wait_until_settled(other)) == {"EXPIRED"}
    hold.release()
    assert brief.wait_until_settled(of) == ["DELIVERED"] + ["EXPIRED"] * 19
    assert [request.id for request in of.endpoint.received] == ids[:1]


@pytest.mark.slow
def test_a_queue_group_without_a_taking_endpoint_expires_as_a_whole(
    product: Product, receiver: Receiver
) -> None:
    flow = product.flow("Queue", kind="QUEUE", ttl_seconds=600)
    policy = policy_like(product, "teamforge", **LONG_PAUSE)
    names = [f"{name}-{flow.event_type[-8:]}" for name in "ab"]
    group = [flow.subscribe(receiver.endpoint(name), policy=policy) for name in names]
    for of in group:
        of.endpoint.always(Close())
    flow.publish()
    eventually(
        lambda: all(delivery["attempt_count"] for of in group for delivery in flow.deliveries(of)),
        "both were tried",
    )
    expire(flow, *group)
    assert [flow.wait_until_settled(of) for of in group] == [["EXPIRED"]] * 2
