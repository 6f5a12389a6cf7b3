"""webMethods' policies in the started product: retry in place, fail, or suspend and probe."""

import secrets
from collections.abc import Mapping
from itertools import pairwise

import pytest

from tests.support.product import Flow, StartedSubscription
from tests.support.receivers import OK, Answer, Receiver, ReceiverEndpoint
from tests.support.rest import RestRefusedError
from tests.system.flows.test_retries import policy_like
from tests.system.operation.installation import eventually

IN_PLACE = {"retry_seconds": 0.2, "max_attempts": 3}
SUSPENDING = IN_PLACE | {"when_used_up": "SUSPEND", "probe_seconds": 1}


def subscribe(
    flow: Flow, receiver: Receiver, policy: Mapping[str, object], **fields: str
) -> StartedSubscription:
    name = policy_like(flow.product, "webmethods", **policy)
    return flow.subscribe(receiver.endpoint(f"hook-{secrets.token_hex(4)}"), policy=name, **fields)


def wait_until_suspended(flow: Flow, of: StartedSubscription) -> None:
    eventually(
        lambda: flow.lane(of)["state"] == "SUSPENDED", f"the lane of {of.subscriber} is SUSPENDED"
    )


def journal_of(flow: Flow, of: StartedSubscription) -> list[str]:
    with flow.product.connect() as connection:
        rows = connection.execute(
            "SELECT delivery_journalentry.kind FROM delivery_journalentry JOIN delivery_lane lane "
            "ON lane.id = lane_id JOIN subscriptions_subscriber subscriber "
            "ON subscriber.id = lane.subscriber_id "
            "WHERE subscriber.name = %s ORDER BY delivery_journalentry.id",
            (of.subscriber,),
        )
        return [row[0] for row in rows]


def test_a_message_is_retried_in_place_and_not_overtaken(flow: Flow, receiver: Receiver) -> None:
    of = subscribe(flow, receiver, IN_PLACE)
    of.endpoint.next(Answer(503), Answer(500))
    first, second = flow.publish(), flow.publish()
    received = of.endpoint.wait_for_count(4)
    assert [request.id for request in received] == [first, first, first, second]
    assert received[1].at - received[0].at >= 0.19
    assert flow.wait_until_settled(of) == ["DELIVERED", "DELIVERED"]


def test_when_the_attempts_are_used_up_it_is_failed_and_the_next_is_sent(
    flow: Flow, receiver: Receiver
) -> None:
    of = subscribe(flow, receiver, IN_PLACE)
    of.endpoint.next(*[Answer(500)] * 3)
    flow.publish_numbered(2)
    assert flow.wait_until_settled(of) == ["FAILED", "DELIVERED"]
    assert len(of.endpoint.received) == 4


def test_a_suspended_lane_resumes_by_itself_when_the_probe_succeeds(
    flow: Flow, receiver: Receiver
) -> None:
    probe = receiver.endpoint(f"probe-{secrets.token_hex(4)}")
    probe.always(Answer(503))
    of = subscribe(flow, receiver, SUSPENDING, probe_url=probe.url)
    of.endpoint.next(*[Answer(500)] * 3)
    first, second = flow.publish(), flow.publish()
    wait_until_suspended(flow, of)
    asked = probe.wait_for_count(2)
    assert {request.method for request in asked} == {"GET"}
    assert len(of.endpoint.received) == 3
    assert flow.lane(of)["delivery"] == flow.delivery(of, first)["id"]
    probe.always(OK)
    assert flow.wait_until_settled(of) == ["DELIVERED", "DELIVERED"]
    assert [request.id for request in of.endpoint.received] == [first, first, first, first, second]
    assert [kind for kind in journal_of(flow, of) if kind != "BLOCKED"] == ["SUSPENDED", "RESUMED"]


@pytest.mark.slow
def test_a_resumed_lane_has_as_many_attempts_again(flow: Flow, receiver: Receiver) -> None:
    probe = receiver.endpoint(f"probe-{secrets.token_hex(4)}")
    of = subscribe(flow, receiver, SUSPENDING, probe_url=probe.url)
    # The probe URL answers at once, the endpoint does not recover for two rounds.
    of.endpoint.next(*[Answer(500)] * 7)
    flow.publish()
    assert flow.wait_until_settled(of) == ["DELIVERED"]
    assert len(of.endpoint.received) == 8
    assert len(probe.received) == 2


@pytest.mark.slow
def test_a_probe_that_answers_while_the_endpoint_fails_is_called_at_its_interval(
    flow: Flow, receiver: Receiver
) -> None:
    probe = receiver.endpoint(f"probe-{secrets.token_hex(4)}")
    of = subscribe(flow, receiver, SUSPENDING | {"max_attempts": 1}, probe_url=probe.url)
    of.endpoint.always(Answer(500))
    flow.publish()
    asked = probe.wait_for_count(4)
    assert all(later.at - earlier.at >= 0.9 for earlier, later in pairwise(asked))


def test_without_a_probe_url_a_suspended_lane_waits_for_a_person(
    flow: Flow, receiver: Receiver
) -> None:
    of = subscribe(flow, receiver, SUSPENDING)
    of.endpoint.next(*[Answer(500)] * 3)
    flow.publish_numbered(2)
    wait_until_suspended(flow, of)
    assert flow.lane(of)["next_try_at"] is None
    assert flow.endpoint_state(of) == "DOWN"
    # A change of the subscription makes the sender check the lane, but does not resume it.
    flow.rest.patch(f"subscriptions/{of.id}", {"timeout_seconds": 7})
    other = flow.subscribe(receiver.endpoint(f"other-{secrets.token_hex(4)}"))
    flow.publish()
    assert flow.wait_until_settled(other) == ["DELIVERED"]
    assert len(of.endpoint.received) == 3
    flow.rest.post(f"lanes/{of.subscriber}/resume")
    assert flow.wait_until_settled(of) == ["DELIVERED"] * 3
    assert flow.endpoint_state(of) == "UP"


def test_making_its_subscription_inactive_frees_a_suspended_lane(
    flow: Flow, receiver: Receiver
) -> None:
    of = subscribe(flow, receiver, SUSPENDING)
    other = flow.subscribe(
        receiver.endpoint(f"other-{secrets.token_hex(4)}"), subscriber=of.subscriber
    )
    of.endpoint.always(Answer(500))
    flow.publish()
    wait_until_suspended(flow, of)
    assert other.endpoint.received == []
    flow.rest.patch(f"subscriptions/{of.id}", {"status": "INACTIVE"})
    assert flow.wait_until_settled(other) == ["DELIVERED"]
    assert flow.statuses(of) == ["PENDING"]


def test_a_rejection_suspends_a_serial_subscriber_that_wants_it(
    flow: Flow, receiver: Receiver
) -> None:
    probe: ReceiverEndpoint = receiver.endpoint(f"probe-{secrets.token_hex(4)}")
    of = subscribe(flow, receiver, {"suspends_on_reject": True}, probe_url=probe.url)
    of.endpoint.next(Answer(404))
    flow.publish_numbered(2)
    wait_until_suspended(flow, of)
    assert flow.statuses(of) == ["REJECTED", "PENDING"]
    flow.rest.post(f"lanes/{of.subscriber}/resume")
    assert flow.wait_until_settled(of) == ["REJECTED", "DELIVERED"]
    # A receiver that rejects a message is available: only a person can decide.
    assert probe.received == []


def test_only_a_suspended_lane_can_be_resumed(flow: Flow, receiver: Receiver) -> None:
    of = flow.subscribe(receiver.endpoint("hook"))
    with pytest.raises(RestRefusedError) as refused:
        flow.rest.post(f"lanes/{of.subscriber}/resume")
    assert refused.value.response.status_code == 409
