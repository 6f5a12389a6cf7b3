"""A queue sender is killed -9, in each of its crash windows.

choose ─▶ record the attempts in flight ─▶ send ─▶ answer ─▶ commit
       1                                2       3         4
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import pytest

from tests.support.product import Flow, Product, StartedSubscription
from tests.support.receivers import Hold, Received, Receiver
from tests.system.faults.observed import Observed
from tests.system.operation.installation import eventually, kill


@dataclass(frozen=True, slots=True)
class EndpointGroup:
    """Two endpoints of one group; chance decides which of them gets a message."""

    flow: Flow
    members: Sequence[StartedSubscription]

    @property
    def received(self) -> list[Received]:
        return list(chain.from_iterable(of.endpoint.received for of in self.members))

    def wait_for_count(self, count: int) -> list[Received]:
        eventually(lambda: len(self.received) >= count, f"{count} requests came")
        return self.received

    def statuses(self) -> list[str]:
        return sorted(chain.from_iterable(self.flow.statuses(of) for of in self.members))

    def wait_until_settled(self) -> list[str]:
        eventually(lambda: "PENDING" not in self.statuses(), "the group is settled")
        return self.statuses()

    def outcomes(self, message: str) -> list[list[str]]:
        found = [self.flow.delivery(of, message)["attempts"] for of in self.members]
        return sorted([attempt["outcome"] for attempt in attempts] for attempts in found)

    def answer(self, hold: Hold) -> None:
        for of in self.members:
            of.endpoint.next(hold)


@pytest.fixture
def flow(product: Product) -> Flow:
    return product.flow("QueueFault", kind="QUEUE")


def group_of(flow: Flow, receiver: Receiver, **fields: str) -> EndpointGroup:
    names = [f"{name}-{flow.event_type[-8:]}" for name in "ab"]
    return EndpointGroup(
        flow, [flow.subscribe(receiver.endpoint(name), **fields) for name in names]
    )


@pytest.mark.slow
def test_a_kill_before_the_run_is_recorded_sends_nothing(
    flow: Flow, receiver: Receiver, observed: Observed
) -> None:
    lane_id = observed.next_queue_lane_id(flow)
    group = group_of(flow, receiver)
    with observed.locked("delivery_lane", lane_id) as lock:
        message = flow.publish()
        observed.terminate(lock.kill_who_waits())
        assert group.received == []
    (request,) = group.wait_for_count(1)
    assert request.redelivery is None
    assert group.wait_until_settled() == ["DELIVERED", "REDUNDANT"]
    assert group.outcomes(message) == [[], ["SUCCESS"]]


@pytest.mark.slow
def test_killed_after_it_is_recorded_it_is_in_doubt_though_it_was_not_sent(
    flow: Flow, receiver: Receiver, observed: Observed
) -> None:
    lane_id = observed.next_queue_lane_id(flow)
    group = group_of(flow, receiver)
    observed.wait_until_quiet()
    # Otherwise a sender that begins the lane first writes that an earlier test's run is over.
    observed.forget_run(lane_id)
    with observed.locked("delivery_lane", lane_id) as lock:
        message = flow.publish()
        # Its backend continues and commits the statement, with no process left to send.
        lock.kill_who_commits()
    (request,) = group.wait_for_count(1)
    assert request.redelivery == "in-doubt"
    assert group.wait_until_settled() == ["DELIVERED", "REDUNDANT"]
    assert group.outcomes(message) == [[], ["LOST", "SUCCESS"]]


def test_killed_between_send_and_answer_it_is_sent_to_the_same_endpoint_again(
    flow: Flow, receiver: Receiver, observed: Observed
) -> None:
    group, hold = group_of(flow, receiver), Hold()
    group.answer(hold)
    message = flow.publish()
    (first,) = group.wait_for_count(1)
    kill(observed.queue_sender_of(message))
    first, second = group.wait_for_count(2)
    hold.release()
    assert second.path == first.path
    assert (second.redelivery, second.attempt) == ("in-doubt", 2)
    assert group.wait_until_settled() == ["DELIVERED", "REDUNDANT"]
    assert group.outcomes(message) == [[], ["LOST", "SUCCESS"]]


def test_killed_between_answer_and_commit_there_is_one_delivered(
    flow: Flow, receiver: Receiver, observed: Observed
) -> None:
    group, hold = group_of(flow, receiver), Hold()
    group.answer(hold)
    message = flow.publish()
    (first,) = group.wait_for_count(1)
    with observed.locked("delivery_delivery", int(first.headers["inturn-delivery"])) as lock:
        hold.release()
        observed.terminate(lock.kill_who_waits())
    first, second = group.wait_for_count(2)
    assert (second.path, second.redelivery) == (first.path, "in-doubt")
    assert group.wait_until_settled() == ["DELIVERED", "REDUNDANT"]
    assert group.outcomes(message) == [[], ["LOST", "SUCCESS"]]


@pytest.mark.slow
def test_under_hold_a_delivery_in_doubt_waits_and_no_sibling_is_sent(
    flow: Flow, receiver: Receiver, observed: Observed
) -> None:
    group, hold = group_of(flow, receiver, policy="strict"), Hold()
    group.answer(hold)
    message = flow.publish()
    group.wait_for_count(1)
    kill(observed.queue_sender_of(message))
    eventually(lambda: "IN_DOUBT" in group.statuses(), "it is IN_DOUBT")
    hold.release()
    # A later message of the same lane is sent, so this one has been passed over.
    later = [flow.publish() for _ in range(5)]
    eventually(lambda: {request.id for request in group.received} >= set(later), "later ones come")
    assert [request.id for request in group.received].count(message) == 1
    assert sorted(flow.delivery(of, message)["status"] for of in group.members) == [
        "IN_DOUBT",
        "PENDING",
    ]
