"""CONCURRENT subscribers in the started product.

Many requests are in flight, within the limit, and a failure delays no other delivery.
"""

import asyncio
import secrets

import pytest
from aiohttp import web

from tests.support.product import Flow, Product, StartedSubscription
from tests.support.receivers import OK, Answer, Close, Hold, Receiver, Slow
from tests.system.flows.test_retries import policy_like
from tests.system.operation.installation import eventually

MOST = 16


class Counted:
    """Answers once so many requests were in flight together, after a delay in which more would be.

    `most` is the greatest number in flight.
    """

    def __init__(self, together: int = 1) -> None:
        self._together = together
        self._slow = Slow(0.05)
        self._now = 0
        self.most = 0

    @property
    def status(self) -> int:
        return 200

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        self._now += 1
        self.most = max(self.most, self._now)
        try:
            while self.most < self._together and request.transport is not None:
                await asyncio.sleep(0.005)
            return await self._slow.answer(request)
        finally:
            self._now -= 1


def subscribe(flow: Flow, receiver: Receiver, **fields: object) -> StartedSubscription:
    """Create a subscription of a CONCURRENT subscriber."""
    policy = fields.pop("policy", "teamforge")
    name = f"hook-{secrets.token_hex(4)}"
    owner = flow.subscriber(name, **{"processing": "CONCURRENT", "max_in_flight": MOST} | fields)
    return flow.subscribe(receiver.endpoint(name), subscriber=owner, policy=policy)


def change(flow: Flow, of: StartedSubscription, **fields: object) -> None:
    flow.rest.patch(f"subscribers/{of.subscriber}", fields)


def test_many_are_under_way_at_once_and_never_more_than_max_in_flight(
    flow: Flow, receiver: Receiver
) -> None:
    concurrent, counted = subscribe(flow, receiver), Counted(MOST)
    concurrent.endpoint.always(counted)
    flow.publish_numbered(200)
    assert flow.wait_until_settled(concurrent) == ["DELIVERED"] * 200
    assert counted.most == MOST
    assert len({request.id for request in concurrent.endpoint.received}) == 200
    flow.rest.patch(f"subscriptions/{concurrent.id}", {"status": "INACTIVE"})
    serial, alone = flow.subscribe(receiver.endpoint("serial")), Counted()
    serial.endpoint.always(alone)
    flow.publish_numbered(40)
    assert flow.wait_until_settled(serial) == ["DELIVERED"] * 40
    assert alone.most == 1


def test_a_failing_or_hanging_endpoint_delays_no_other(flow: Flow, receiver: Receiver) -> None:
    of, hold = subscribe(flow, receiver, max_in_flight=4), Hold()
    of.endpoint.next(hold, Answer(500))
    ids = flow.publish_numbered(20)
    eventually(
        lambda: flow.statuses(of).count("DELIVERED") >= 19,
        "all but the one that hangs are delivered",
    )
    hold.release()
    assert flow.wait_until_settled(of) == ["DELIVERED"] * 20
    # The failed one was sent twice.
    assert len(of.endpoint.received) == 21
    assert {request.id for request in of.endpoint.received} == set(ids)


def test_an_endpoint_that_is_down_is_shown_and_tried_with_one_message_at_a_time(
    flow: Flow, receiver: Receiver
) -> None:
    of = subscribe(flow, receiver)
    of.endpoint.always(Close())
    flow.publish_numbered(50)
    lane = flow.wait_until_blocked(of)
    assert lane["reason"]
    assert lane["delivery"] in {delivery["id"] for delivery in flow.deliveries(of)}
    assert lane["next_try_at"]
    tried = len(of.endpoint.received)
    # Those in flight when the endpoint went down, and then one after each pause.
    assert tried <= MOST + 2
    of.endpoint.always(OK)
    assert flow.wait_until_settled(of) == ["DELIVERED"] * 50
    eventually(lambda: flow.lane(of)["state"] != "BLOCKED", "it flows again")
    assert flow.endpoint_state(of) == "UP"


def test_while_one_endpoint_is_down_the_subscribers_other_flows(
    flow: Flow, receiver: Receiver
) -> None:
    down = subscribe(flow, receiver)
    up = flow.subscribe(receiver.endpoint(f"up-{secrets.token_hex(4)}"), subscriber=down.subscriber)
    down.endpoint.always(Close())
    flow.publish_numbered(100)
    assert flow.wait_until_settled(up) == ["DELIVERED"] * 100
    assert set(flow.statuses(down)) == {"PENDING"}
    assert flow.wait_until_blocked(down)["waiting"] == 100
    assert (flow.endpoint_state(down), flow.endpoint_state(up)) == ("DOWN", "UP")


@pytest.mark.slow
def test_a_delivery_in_the_retry_lane_blocks_nothing_while_the_lane_is_busy(
    flow: Flow, product: Product, receiver: Receiver
) -> None:
    policy = policy_like(product, "workfront-2017", retry_seconds=600)
    of, other, hold = subscribe(flow, receiver, policy=policy), product.flow("Other"), Hold()
    busy = other.subscribe(
        receiver.endpoint(f"busy-{secrets.token_hex(4)}"),
        subscriber=of.subscriber,
        timeout_seconds=120,
    )
    busy.endpoint.next(hold)
    other.publish()
    busy.endpoint.wait_for_count(1)
    of.endpoint.next(Close())
    flow.publish()
    flow.wait_until_blocked(of)
    eventually(lambda: flow.lane(of)["state"] != "BLOCKED", "nothing stops it any more")
    assert other.statuses(busy) == ["PENDING"]
    hold.release()


def test_retry_now_retries_the_last_failure_at_once(
    flow: Flow, product: Product, receiver: Receiver
) -> None:
    policy = policy_like(product, "teamforge", pause_seconds=600, pause_max_seconds=600)
    of = subscribe(flow, receiver, policy=policy)
    of.endpoint.next(Close())
    flow.publish()
    flow.wait_until_blocked(of)
    flow.rest.post(f"lanes/{of.subscriber}/retry")
    assert flow.wait_until_settled(of) == ["DELIVERED"]


def test_an_inactive_subscription_blocks_nothing(
    flow: Flow, product: Product, receiver: Receiver
) -> None:
    policy = policy_like(product, "teamforge", pause_seconds=600, pause_max_seconds=600)
    of = subscribe(flow, receiver, policy=policy)
    of.endpoint.next(Close())
    flow.publish()
    flow.wait_until_blocked(of)
    flow.rest.patch(f"subscriptions/{of.id}", {"status": "INACTIVE"})
    eventually(lambda: flow.lane(of)["state"] != "BLOCKED", "nothing stops it any more")
    assert flow.statuses(of) == ["PENDING"]


def test_skip_gets_a_blocked_lane_going(flow: Flow, product: Product, receiver: Receiver) -> None:
    policy = policy_like(product, "teamforge", pause_seconds=600, pause_max_seconds=600)
    of = subscribe(flow, receiver, policy=policy)
    of.endpoint.next(Close())
    flow.publish()
    flow.wait_until_blocked(of)
    flow.rest.post(f"lanes/{of.subscriber}/skip")
    eventually(lambda: flow.lane(of)["state"] != "BLOCKED", "nothing stops it any more")
    flow.publish()
    assert flow.wait_until_settled(of) == ["CANCELLED", "DELIVERED"]


def test_deliveries_that_the_policy_retries_apart_go_to_the_retry_lane(
    flow: Flow, product: Product, receiver: Receiver
) -> None:
    policy = policy_like(product, "workfront-2017", retry_seconds=600)
    of = subscribe(flow, receiver, policy=policy)
    of.endpoint.next(Answer(500))
    message = flow.publish()
    eventually(lambda: flow.delivery(of, message)["attempt_count"] == 1, "it was tried")
    assert flow.delivery(of, message)["lane"] == "retry:0"


@pytest.mark.slow
def test_a_change_of_processing_takes_effect_on_a_running_lane(
    flow: Flow, receiver: Receiver
) -> None:
    of, counted = subscribe(flow, receiver, processing="SERIAL"), Counted()
    of.endpoint.always(counted)
    flow.publish_numbered(600)
    of.endpoint.wait_for_count(10)
    assert counted.most == 1
    change(flow, of, processing="CONCURRENT")
    eventually(lambda: counted.most > 1, "several are under way")
    assert len(of.endpoint.received) < 600
    change(flow, of, max_in_flight=2)
    before = len(of.endpoint.received)
    of.endpoint.wait_for_count(before + 100)
    fewer = Counted()
    of.endpoint.always(fewer)
    of.endpoint.wait_for_count(before + 150)
    assert fewer.most <= 2
    change(flow, of, processing="SERIAL")
    of.endpoint.always(OK)
    assert set(flow.wait_until_settled(of)) == {"DELIVERED"}
    assert len({request.id for request in of.endpoint.received}) == len(of.endpoint.received) == 600
    ids = flow.publish_numbered(50)
    of.endpoint.wait_for_last(ids[-1])
    assert [request.id for request in of.endpoint.received][-50:] == ids


def test_postponed_deliveries_are_sent_in_order_once_the_lane_is_serial(
    flow: Flow, product: Product, receiver: Receiver
) -> None:
    policy = policy_like(product, "webmethods", retry_seconds=600)
    of = subscribe(flow, receiver, policy=policy)
    of.endpoint.always(Answer(500))
    ids = flow.publish_numbered(4)
    eventually(
        lambda: {delivery["attempt_count"] for delivery in flow.deliveries(of)} == {1},
        "each was tried",
    )
    of.endpoint.always(OK)
    change(flow, of, processing="SERIAL")
    assert flow.wait_until_settled(of) == ["DELIVERED"] * 4
    assert [request.id for request in of.endpoint.accepted] == ids


def test_a_serial_lane_with_skipped_failures_becomes_concurrent(
    flow: Flow, receiver: Receiver
) -> None:
    of = subscribe(flow, receiver, processing="SERIAL")
    # The second succeeds, so that the lane does not pause.
    of.endpoint.follow(lambda request: Answer(500) if request.body == b'{"number":0}' else OK)
    flow.publish_numbered(2)
    eventually(lambda: flow.statuses(of) == ["PENDING", "DELIVERED"], "the first is skipped")
    change(flow, of, processing="CONCURRENT")
    of.endpoint.always(OK)
    assert flow.wait_until_settled(of) == ["DELIVERED"] * 2


def test_a_blocked_lane_flows_when_its_subscriber_becomes_concurrent(
    flow: Flow, product: Product, receiver: Receiver
) -> None:
    policy = policy_like(product, "strict", pause_seconds=600, pause_max_seconds=600)
    of = subscribe(flow, receiver, policy=policy, processing="SERIAL")
    of.endpoint.follow(lambda request: Answer(500) if request.body == b'{"number":0}' else OK)
    flow.publish_numbered(20)
    flow.wait_until_blocked(of)
    change(flow, of, processing="CONCURRENT")
    eventually(lambda: flow.statuses(of).count("DELIVERED") == 19, "the others do not wait for it")


@pytest.mark.parametrize("field", ["max_in_flight", "max_queued_to_send"])
def test_a_small_max_in_flight_loses_no_message(flow: Flow, receiver: Receiver, field: str) -> None:
    fields = (
        {"max_queued_to_send": 1, "refill_level": 0}
        if field == "max_queued_to_send"
        else {field: 1}
    )
    of = subscribe(flow, receiver, **fields)
    flow.publish_numbered(30)
    assert flow.wait_until_settled(of) == ["DELIVERED"] * 30
