"""A sender of the retry lane or the callback lane is killed -9, in each of its crash windows.

read ─▶ record the attempts in flight ─▶ send ─▶ answer ─▶ commit
     1                                2       3         4
"""

import secrets
from collections.abc import Callable
from dataclasses import dataclass

import pytest
import requests

from tests.support.product import Flow, Product, StartedSubscription
from tests.support.receivers import Answer, Hold, Receiver, ReceiverEndpoint
from tests.support.rest import Json
from tests.system.faults.observed import Observed
from tests.system.operation.installation import eventually, kill


@dataclass(frozen=True, slots=True)
class Scene:
    """A lane, its `endpoint`, and `begin`, which puts a delivery into it and returns the message.

    `before` are the outcomes that its history then has.
    """

    product: Product
    lane_id: int
    endpoint: ReceiverEndpoint
    begin: Callable[[], str]
    before: tuple[str, ...] = ()

    def came(self) -> int:
        """Return how often the lane has sent it."""
        return len(self.endpoint.received) - len(self.before)

    def wait_for(self, count: int) -> list[str | None]:
        """Wait until the lane has sent it so often; return the mark of each attempt."""
        received = self.endpoint.wait_for_count(len(self.before) + count)
        return [request.redelivery for request in received[len(self.before) :]]

    def delivery(self, message: str) -> Json:
        (found,) = self.product.rest.get("deliveries", message=message)["results"]
        return self.product.rest.get(f"deliveries/{found['id']}")

    def outcomes_when_delivered(self, message: str) -> list[str]:
        eventually(lambda: self.delivery(message)["status"] == "DELIVERED", "it is DELIVERED")
        outcomes = [attempt["outcome"] for attempt in self.delivery(message)["attempts"]]
        assert outcomes[: len(self.before)] == list(self.before)
        return outcomes[len(self.before) :]


def retry_scene(product: Product, receiver: Receiver, observed: Observed) -> Scene:
    """The first attempt fails in the subscriber's own lane, the retry lane makes the second."""
    flow = product.flow("RetryFault")
    name = f"soon-{secrets.token_hex(4)}"
    product.rest.post("policies", {"name": name, "copy_of": "workfront-2017", "retry_seconds": 0.5})
    of = flow.subscribe(receiver.endpoint(f"hook-{secrets.token_hex(4)}"), policy=name)
    of.endpoint.next(Answer(500))
    return Scene(
        product, observed.lane_of_kind("RETRY"), of.endpoint, flow.publish, ("SERVER_ERROR",)
    )


def callback_scene(product: Product, receiver: Receiver, observed: Observed) -> Scene:
    """A worker answers a QUEUE message; the callback lane sends the answer."""
    flow = product.flow("CallbackFault", kind="QUEUE")
    worker = flow.subscribe(receiver.endpoint(f"worker-{secrets.token_hex(4)}"))
    origin = receiver.endpoint(f"origin-{secrets.token_hex(4)}")
    return Scene(
        product,
        observed.lane_of_kind("CALLBACK"),
        origin,
        lambda: answered(flow, worker, origin.url),
    )


def answered(flow: Flow, worker: StartedSubscription, url: str) -> str:
    flow.publish(CallbackURL=url)
    (request,) = worker.endpoint.wait_for_count(1)
    # Otherwise its outcome and the callback lane's run might be committed together, and lost
    # together.
    flow.wait_until_settled(worker)
    response = requests.post(request.headers["CallbackURL"], json={"done": True}, timeout=30)
    assert response.status_code == 202, response.text
    id: str = response.json()["id"]
    return id


@pytest.fixture(params=[retry_scene, callback_scene], ids=["retry lane", "callback lane"])
def scene(
    request: pytest.FixtureRequest, product: Product, receiver: Receiver, observed: Observed
) -> Scene:
    made: Scene = request.param(product, receiver, observed)
    # Otherwise the session that waits for the lane's row might be a sender that records the lane as
    # idle, or takes over a killed sender's run.
    eventually(lambda: observed.is_idle(made.lane_id), "nobody serves the lane any more")
    observed.forget_run(made.lane_id)
    return made


@pytest.mark.slow
def test_a_kill_before_the_run_is_recorded_sends_nothing(scene: Scene, observed: Observed) -> None:
    with observed.locked("delivery_lane", scene.lane_id) as lock:
        message = scene.begin()
        observed.terminate(lock.kill_who_waits())
        assert scene.came() == 0
    assert scene.wait_for(1) == [None]
    assert scene.outcomes_when_delivered(message) == ["SUCCESS"]


@pytest.mark.slow
def test_killed_after_it_is_recorded_it_is_in_doubt_though_it_was_not_sent(
    scene: Scene, observed: Observed
) -> None:
    with observed.locked("delivery_lane", scene.lane_id) as lock:
        message = scene.begin()
        # Its backend continues and commits the statement, with no process left to send.
        lock.kill_who_commits()
    assert scene.wait_for(1) == ["in-doubt"]
    assert scene.outcomes_when_delivered(message) == ["LOST", "SUCCESS"]


def test_killed_between_send_and_answer_it_is_sent_again_and_marked(
    scene: Scene, observed: Observed
) -> None:
    hold = Hold()
    scene.endpoint.next(hold)
    message = scene.begin()
    scene.wait_for(1)
    kill(observed.sender_of_lane(scene.lane_id))
    marks = scene.wait_for(2)
    hold.release()
    assert marks == [None, "in-doubt"]
    assert scene.outcomes_when_delivered(message) == ["LOST", "SUCCESS"]


def test_killed_between_answer_and_commit_it_is_sent_again_and_marked(
    scene: Scene, observed: Observed
) -> None:
    hold = Hold()
    scene.endpoint.next(hold)
    message = scene.begin()
    scene.wait_for(1)
    with observed.locked("delivery_delivery", scene.endpoint.received[-1].delivery) as lock:
        hold.release()
        observed.terminate(lock.kill_who_waits())
    assert scene.wait_for(2) == [None, "in-doubt"]
    assert scene.outcomes_when_delivered(message) == ["LOST", "SUCCESS"]
    assert scene.came() == 2


def test_killed_as_a_failure_is_committed_it_is_in_one_lane_and_not_in_both(
    product: Product, receiver: Receiver, observed: Observed
) -> None:
    """The subscriber's own lane finds it in doubt: neither the attempt nor the move is on disk."""
    flow, hold = product.flow("RetryFault"), Hold(Answer(500))
    of = flow.subscribe(receiver.endpoint(f"hook-{secrets.token_hex(4)}"), policy="workfront-2017")
    of.endpoint.next(hold)
    message = flow.publish()
    (first,) = of.endpoint.wait_for_count(1)
    with observed.locked("delivery_delivery", first.delivery) as lock:
        hold.release()
        observed.terminate(lock.kill_who_waits())
    _, second = of.endpoint.wait_for_count(2)
    assert (second.redelivery, second.attempt) == ("in-doubt", 2)
    assert flow.wait_until_settled(of) == ["DELIVERED"]
    outcomes = [attempt["outcome"] for attempt in flow.delivery(of, message)["attempts"]]
    assert outcomes == ["LOST", "SUCCESS"]
