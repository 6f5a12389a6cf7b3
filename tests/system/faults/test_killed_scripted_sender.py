"""A sender is killed -9 around a script: every attempt sends and signs the stored output.

read ─▶ execute ─▶ store outputs and record the run ─▶ send ─▶ answer ─▶ commit …
"""

from collections.abc import Sequence

import pytest
from standardwebhooks.webhooks import Webhook

from tests.support.product import Flow, Product, StartedSubscription
from tests.support.receivers import Hold, Receiver
from tests.support.receivers.received import Received
from tests.system.faults.observed import Observed
from tests.system.faults.promises import insist, outcomes
from tests.system.operation.installation import kill

# A second execution would give another output.
RANDOM = "$outmessage = {made: Math.random(), number: $inmessage.number};"


def stored(product: Product, of: StartedSubscription) -> list[bytes]:
    """Return the scripts' outputs for the subscription's deliveries, in publication order."""
    with product.connect() as connection:
        rows = connection.execute(
            "SELECT output.body FROM delivery_scriptoutput output"
            " JOIN delivery_delivery delivery ON delivery.id = output.delivery_id"
            " WHERE delivery.subscription_id = %s ORDER BY output.delivery_id",
            [of.id],
        ).fetchall()
    return [bytes(body) for (body,) in rows]


def insist_on_signatures(of: StartedSubscription, received: Sequence[Received]) -> None:
    for request in received:
        Webhook(of.secret).verify(request.body, dict(request.headers))


def test_killed_between_storing_and_sending_the_stored_bytes_are_sent(
    flow: Flow, product: Product, observed: Observed
) -> None:
    with Receiver() as receiver:
        receiver.refuse_connections()
        of = flow.subscribe(receiver.endpoint("a"), script=RANDOM)
        published = flow.publish_numbered(3)
        flow.wait_until_blocked(of)
        made = stored(product, of)
        kill(observed.sender_of(of))
        receiver.accept_connections()
        received = of.endpoint.wait_for_count(3)
    assert len(made) == 3
    assert [request.body for request in received] == made == stored(product, of)
    assert [request.id for request in received] == published
    assert [request.attempt for request in received][1:] == [1, 1]
    insist_on_signatures(of, received)


@pytest.mark.slow
def test_killed_before_outputs_are_stored_nothing_was_sent(
    flow: Flow, product: Product, receiver: Receiver, observed: Observed
) -> None:
    of = flow.subscribe(receiver.endpoint("a"), script=RANDOM)
    with observed.locked("delivery_lane", observed.lane_id(of)) as lock:
        published = flow.publish_numbered(3)
        observed.terminate(lock.kill_who_waits())
        assert (of.endpoint.received, stored(product, of)) == ([], [])
    received = of.endpoint.wait_for_count(3)
    assert [request.body for request in received] == stored(product, of)
    assert [request.attempt for request in received] == [1, 1, 1]
    insist(flow, of, published, crashes=0)


@pytest.mark.slow
def test_killed_between_send_and_answer_both_attempts_have_the_same_bytes(
    flow: Flow, receiver: Receiver, observed: Observed
) -> None:
    of = flow.subscribe(receiver.endpoint("a"), script=RANDOM)
    hold = Hold()
    of.endpoint.next(hold)
    published = flow.publish_numbered(2)
    of.endpoint.wait_for_count(1)
    flow.rest.patch(f"subscriptions/{of.id}", {"script": "$outmessage = 'changed'.length;"})
    kill(observed.sender_of(of))
    first, second, third = of.endpoint.wait_for_count(3)
    hold.release()
    assert [request.id for request in (first, second, third)] == [published[n] for n in (0, 0, 1)]
    assert first.body == second.body
    # It was never sent, so the current script makes its output.
    assert third.body == b"7"
    insist_on_signatures(of, [first, second, third])
    assert outcomes(flow, of, published[0]) == ["LOST", "SUCCESS"]
    insist(flow, of, published)
