"""The web server is killed -9 while the messages of joins are published.

first half stored ─▶ second half arrives ─▶ commit ─▶ answer
                  1                       2        3

Each publisher repeats its unanswered messages, with the same keys: each joined message is sent
once, with both halves, and no half is left.
"""

import secrets
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import orjson
import pytest
import requests

from tests.support.product import Flow, Product, StartedSubscription
from tests.support.receivers import Receiver
from tests.system.faults.gate import gate
from tests.system.operation.installation import eventually, kill, stop

IDS = ["A", "B", "C"]


@dataclass(frozen=True, slots=True)
class Halves:
    """A subscriber's join of two event types: the other one, which is sent, and the flow's."""

    flow: Flow
    other: str
    first: StartedSubscription
    second: StartedSubscription

    def publish_first(self) -> list[str]:
        return self._publish(self.other)

    def publish_second(self) -> list[str]:
        return self._publish(self.flow.event_type)

    def _publish(self, event_type: str) -> list[str]:
        """Publish one half of each join in one transaction, and return the messages' ids."""
        items = [
            {
                "event": event_type,
                "headers": {"activation": id},
                "body": {"half": id},
                "idempotency_key": f"{event_type} {id}",
            }
            for id in IDS
        ]
        return [result["id"] for result in self.flow.publisher.publish_batch(items)]

    def waiting(self, of: StartedSubscription) -> list[str]:
        return [row["reason"] for row in self.flow.deliveries(of) if row["status"] == "PENDING"]

    def insist_on_one_of_each(self, first: Sequence[str], second: Sequence[str]) -> None:
        """Check that both halves of each join were sent together once, and that nothing is left."""
        received = self.first.endpoint.wait_for_count(len(IDS))
        assert self.flow.wait_until_settled(self.second) == ["REDUNDANT"] * len(IDS)
        statuses = self.flow.wait_until_settled(self.first)
        assert statuses == ["REDUNDANT"] * len(IDS) + ["DELIVERED"] * len(IDS)
        bodies = [orjson.loads(request.body) for request in received]
        assert [body["activation"] for body in bodies] == IDS
        assert [[part["id"] for part in body["messages"]] for body in bodies] == [
            list(pair) for pair in zip(first, second, strict=True)
        ]
        assert len(self.first.endpoint.received) == len(IDS)
        assert self.second.endpoint.received == []


@pytest.fixture
def halves(flow: Flow, product: Product, receiver: Receiver) -> Halves:
    other = f"{flow.event_type}.{secrets.token_hex(2)}"
    product.rest.post("event-types", {"name": other})
    owner = flow.subscriber("joining")
    join: dict[str, Any] = {"join_mode": "ALL", "join_name": "order", "subscriber": owner}
    return Halves(
        flow,
        other,
        flow.subscribe(receiver.endpoint("first"), event_type=other, position=0, **join),
        flow.subscribe(receiver.endpoint("second"), position=1, **join),
    )


def test_killed_between_the_halves_the_first_ones_still_wait(
    halves: Halves, product: Product
) -> None:
    first = halves.publish_first()
    kill(*product.whole("web"))
    eventually(product.is_ready, "the web server is back")
    assert halves.waiting(halves.first) == ["waits for the other messages of the join order"] * 3
    halves.insist_on_one_of_each(first, halves.publish_second())


@pytest.mark.slow
def test_killed_before_the_commit_of_the_second_halves_no_join_is_complete(
    halves: Halves, product: Product
) -> None:
    first = halves.publish_first()
    with gate(halves.flow) as closed, ThreadPoolExecutor(1) as pool:
        unanswered = pool.submit(halves.publish_second)
        closed.wait_for_one()
        kill(*product.whole("web"))
        assert isinstance(unanswered.exception(), requests.ConnectionError)
        closed.open()
        # PostgreSQL may have got the commit before the kill.
        assert closed.stored() in (0, len(IDS))
    eventually(product.is_ready, "the web server is back")
    halves.insist_on_one_of_each(first, halves.publish_second())


@pytest.mark.slow
def test_killed_between_commit_and_answer_a_retry_completes_no_join_again(
    halves: Halves, product: Product
) -> None:
    first = halves.publish_first()
    with gate(halves.flow) as closed, ThreadPoolExecutor(1) as pool:
        unanswered = pool.submit(halves.publish_second)
        closed.wait_for_one()
        web = product.whole("web")
        stop(*web)
        try:
            closed.open()
            eventually(lambda: closed.stored() == len(IDS), "it is committed")
        finally:
            kill(*web)
        assert isinstance(unanswered.exception(), requests.ConnectionError)
    eventually(product.is_ready, "the web server is back")
    halves.insist_on_one_of_each(first, halves.publish_second())
