"""The worker of chores is killed -9 during a replay: each message is delivered again exactly once.

lock messages ─▶ make deliveries ─▶ write items and position ─▶ commit ─▶ the next batch
              1                  2                            3
"""

from collections import Counter

import pytest

from delivery.models.message import parse_public_id
from tests.support.product import Flow, Product, StartedSubscription
from tests.support.receivers import Receiver
from tests.system.faults.test_killed_chores import Chores
from tests.system.operation.installation import eventually, kill

COUNT = 120
READY = """
    WITH replay AS (
        INSERT INTO delivery_replay (
            subscription_id, event_types, filter, header_filter_string, since, until, rate, state,
            preview, count, done, made, position, error, asked_by
        )
        VALUES (
            %(of)s, '[]', '', '', now() - interval '1 day', now(), %(rate)s, 'READY',
            '[]', %(count)s, 0, 0, 0, '', 'ann'
        )
        RETURNING id
    ), items AS (
        INSERT INTO delivery_replayitem (replay_id, message_id)
        SELECT id, unnest(%(messages)s::bigint[]) FROM replay
    )
    SELECT id FROM replay
"""


@pytest.fixture
def chores(product: Product) -> Chores:
    return Chores(product)


def ready(
    product: Product, of: StartedSubscription, messages: list[str], *, rate: float | None
) -> str:
    """Create a replay that has selected these messages; return its address."""
    ids = [int(message.removeprefix("msg_")) for message in messages]
    with product.connect() as connection:
        row = connection.execute(
            READY, {"of": of.id, "rate": rate, "count": len(ids), "messages": ids}
        ).fetchone()
    assert row is not None
    return f"replays/{row[0]}"


def wait_until(flow: Flow, address: str, done: int) -> None:
    eventually(lambda: flow.rest.get(address)["done"] >= done, f"{done} are gone through")


@pytest.mark.slow
def test_a_replay_continues_after_a_crash(
    flow: Flow, receiver: Receiver, product: Product, chores: Chores
) -> None:
    of = flow.subscribe(receiver.endpoint("hook"))
    published = flow.publish_numbered(COUNT)
    of.endpoint.wait_for_count(COUNT)
    address = ready(product, of, published, rate=40)
    flow.rest.post(f"{address}/start")
    for done in (1, 80):
        wait_until(flow, address, done)
        kill(chores.worker())
    wait_until(flow, address, COUNT)
    requests = of.endpoint.wait_for_count(2 * COUNT)
    replayed = [request for request in requests if "inturn-replay" in request.headers]
    assert [request.id for request in replayed] == published
    assert {request.headers["inturn-replay"] for request in replayed} == {address.split("/")[1]}
    assert set(Counter(delivery["message"] for delivery in flow.deliveries(of)).values()) == {2}
    eventually(lambda: flow.rest.get(address)["state"] == "DONE", "the replay is done")
    assert flow.rest.get(address)["made"] == COUNT


def test_a_batch_that_is_made_and_not_committed_is_made_once(
    flow: Flow, receiver: Receiver, product: Product, chores: Chores
) -> None:
    of = flow.subscribe(receiver.endpoint("hook"))
    published = flow.publish_numbered(10)
    of.endpoint.wait_for_count(10)
    address = ready(product, of, published, rate=None)
    # The deliveries exist, and are being written into the replay's items: the last item waits for
    # this lock.
    last = parse_public_id(published[-1])
    with chores.stopped_at("delivery_replayitem", last, column="message_id"):
        flow.rest.post(f"{address}/start")
    wait_until(flow, address, 10)
    requests = of.endpoint.wait_for_count(20)
    assert [request.id for request in requests[10:]] == published
    assert Counter(delivery["message"] for delivery in flow.deliveries(of)) == dict.fromkeys(
        published, 2
    )
