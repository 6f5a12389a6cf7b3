"""QUEUE messages in the started product: each goes to exactly one endpoint of each group."""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain

import pytest

from tests.support.product import Flow, Product, StartedSubscription
from tests.support.receivers import Answer, Close, Hold, Receiver
from tests.system.faults.gate import change_schema
from tests.system.operation.installation import eventually

GROUPS = {
    "all": "",
    "even": "$$->'Body'->>'number' in ('0', '2', '4', '6', '8')",
    "none": "$$->'Body'->>'number' = 'none'",
}


@pytest.fixture
def flow(product: Product) -> Flow:
    return product.flow("Queue", kind="QUEUE")


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as receiver:
        yield receiver


def subscribe(
    flow: Flow, receiver: Receiver, names: Sequence[str], **fields: str
) -> list[StartedSubscription]:
    return [
        flow.subscribe(receiver.endpoint(f"{name}-{flow.event_type[-8:]}"), **fields)
        for name in names
    ]


def settled(flow: Flow, group: Sequence[StartedSubscription]) -> list[Counter[str]]:
    """Return the statuses of each message's deliveries in the group, with their counts."""
    found = list(chain.from_iterable(flow.deliveries(of) for of in group))
    messages: dict[str, Counter[str]] = {}
    for delivery in found:
        messages.setdefault(delivery["message"], Counter())[delivery["status"]] += 1
    return list(messages.values())


def wait_until_delivered(flow: Flow, group: Sequence[StartedSubscription], count: int) -> None:
    eventually(
        lambda: sum(flow.statuses(of).count("DELIVERED") for of in group) == count,
        f"{count} are delivered to the group",
    )


def test_each_message_goes_to_one_endpoint_of_its_group(flow: Flow, receiver: Receiver) -> None:
    group = subscribe(flow, receiver, ["a", "b", "c"])
    ids = flow.publish_numbered(60)
    wait_until_delivered(flow, group, 60)
    assert settled(flow, group) == [Counter(DELIVERED=1, REDUNDANT=2)] * 60
    received = Counter(request.id for of in group for request in of.endpoint.received)
    assert received == Counter(ids)
    assert all(16 <= len(of.endpoint.received) <= 24 for of in group)


def test_a_subscription_with_another_filter_is_another_group(
    flow: Flow, receiver: Receiver
) -> None:
    everything = subscribe(flow, receiver, ["a", "b"])
    even = subscribe(flow, receiver, ["c", "d"], filter=GROUPS["even"])
    nothing = subscribe(flow, receiver, ["e"], filter=GROUPS["none"])
    flow.publish_numbered(10)
    wait_until_delivered(flow, everything, 10)
    wait_until_delivered(flow, even, 5)
    assert settled(flow, nothing) == []


def test_two_spellings_of_one_filter_are_one_group(flow: Flow, receiver: Receiver) -> None:
    group = subscribe(flow, receiver, ["a"], filter="$$->'Body'->>'p' = '1'")
    group += subscribe(flow, receiver, ["b"], filter="$$->’Body’->>’p’=’1’")
    answers = receiver.endpoint(f"answers-{flow.event_type[-8:]}")
    ids = [flow.publish(b'{"p":"1"}') for _ in range(20)]
    ids.append(flow.publish(b'{"p":"1"}', CallbackURL=answers.url))
    wait_until_delivered(flow, group, 21)
    assert settled(flow, group) == [Counter(DELIVERED=1, REDUNDANT=1)] * 21
    requests = [request for of in group for request in of.endpoint.received]
    assert Counter(request.id for request in requests) == Counter(ids)
    assert [request.id for request in requests if "CallbackURL" in request.headers] == [ids[-1]]
    assert len(flow.rest.get(f"messages/{ids[-1]}")["callbacks"]) == 1


def test_an_endpoint_that_is_down_is_skipped(flow: Flow, receiver: Receiver) -> None:
    down, *up = subscribe(flow, receiver, ["a", "b", "c"])
    down.endpoint.always(Close())
    flow.publish_numbered(60)
    wait_until_delivered(flow, up, 60)
    assert settled(flow, [down, *up]) == [Counter(DELIVERED=1, REDUNDANT=2)] * 60
    # A DOWN endpoint is skipped: most messages do not try it.
    assert sum(delivery["attempt_count"] for delivery in flow.deliveries(down)) < 60


def test_an_endpoint_is_shown_as_down_until_it_takes_a_message(
    flow: Flow, receiver: Receiver
) -> None:
    down, up = subscribe(flow, receiver, ["a", "b"])
    down.endpoint.always(Close())
    flow.publish_numbered(10)
    wait_until_delivered(flow, [up], 10)
    eventually(lambda: flow.endpoint_state(down) == "DOWN", "one is down")
    assert flow.endpoint_state(up) == "UP"
    # The other has accepted all, so nothing waits for it: that ends nothing.
    down.endpoint.always(Answer(200))
    up.endpoint.always(Answer(500))
    flow.publish()
    eventually(lambda: flow.endpoint_state(down) == "UP", "it is up again")


def test_a_refusing_endpoint_settles_only_its_own_delivery(flow: Flow, receiver: Receiver) -> None:
    refusing, taking = subscribe(flow, receiver, ["a", "b"])
    refusing.endpoint.always(Answer(404))
    flow.publish_numbered(20)
    wait_until_delivered(flow, [taking], 20)
    statuses = Counter(flow.statuses(refusing))
    assert set(statuses) <= {"REJECTED", "REDUNDANT"}
    assert len(refusing.endpoint.received) == statuses["REJECTED"] > 0


def test_a_message_waits_while_every_endpoint_is_down(flow: Flow, receiver: Receiver) -> None:
    group = subscribe(flow, receiver, ["a", "b"])
    for of in group:
        of.endpoint.always(Answer(500))
    flow.publish_numbered(4)
    eventually(lambda: all(of.endpoint.received for of in group), "both were tried")
    assert {status for of in group for status in flow.statuses(of)} == {"PENDING"}
    group[1].endpoint.always(Answer(200))
    wait_until_delivered(flow, group[1:], 4)
    assert settled(flow, group) == [Counter(DELIVERED=1, REDUNDANT=1)] * 4


def test_a_group_that_is_down_does_not_delay_another(
    flow: Flow, product: Product, receiver: Receiver
) -> None:
    dead = subscribe(flow, receiver, ["a"])
    dead[0].endpoint.always(Close())
    # More than a sender reads at a time.
    for _ in range(4):
        flow.publish_numbered(1000)
    other = product.flow("Alive", kind="QUEUE")
    alive = subscribe(other, receiver, ["z"])
    other.publish_numbered(50)
    wait_until_delivered(other, alive, 50)
    assert (
        flow.rest.get("deliveries", subscription=dead[0].id, status="DELIVERED", limit=1)["results"]
        == []
    )


def test_an_outcome_that_cannot_be_stored_is_lost_and_costs_no_other_its_own(
    flow: Flow, product: Product, receiver: Receiver
) -> None:
    (of,) = subscribe(flow, receiver, ["a"], policy="strict")
    hold = Hold()
    of.endpoint.always(hold)
    # Two messages of one lane: five senders share the messages.
    ids = [flow.publish() for _ in range(6)][::5]
    received = of.endpoint.wait_for(lambda received: {*ids} <= {request.id for request in received})
    poisoned = next(request for request in received if request.id == ids[0])
    with refusing_to_deliver(product, poisoned.delivery):
        hold.release()
        eventually(lambda: flow.delivery(of, ids[0])["status"] == "IN_DOUBT", "it is held")
    assert [attempt["outcome"] for attempt in flow.delivery(of, ids[0])["attempts"]] == ["LOST"]
    eventually(lambda: flow.delivery(of, ids[1])["status"] == "DELIVERED", "the other is DELIVERED")
    assert flow.delivery(of, ids[1])["attempt_count"] == 1


@pytest.mark.slow
def test_an_outcome_that_cannot_be_stored_is_not_sent_again_without_a_pause(
    flow: Flow, product: Product, receiver: Receiver
) -> None:
    (of,) = subscribe(flow, receiver, ["a"])
    hold = Hold()
    of.endpoint.next(hold)
    message = flow.publish()
    (first,) = of.endpoint.wait_for_count(1)
    with refusing_to_deliver(product, first.delivery):
        hold.release()
        _, second, third = of.endpoint.wait_for_count(3)
    assert third.at - second.at >= 0.9
    assert third.redelivery == "in-doubt"
    eventually(
        lambda: flow.delivery(of, message)["status"] == "DELIVERED", "it is DELIVERED in the end"
    )


@contextmanager
def refusing_to_deliver(product: Product, delivery_id: int) -> Iterator[None]:
    """Make the database refuse to set that one delivery to DELIVERED."""
    with product.connect() as connection:
        connection.execute(
            "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql "
            "AS $$ BEGIN RAISE 'refused'; END $$"
        )
        change_schema(
            connection,
            f"CREATE TRIGGER refuse BEFORE INSERT ON delivery_settled FOR EACH ROW "
            f"WHEN (NEW.id = {delivery_id:d} AND NEW.status = 'DELIVERED') "
            "EXECUTE FUNCTION refuse()",
        )
        try:
            yield
        finally:
            change_schema(connection, "DROP FUNCTION refuse() CASCADE")
