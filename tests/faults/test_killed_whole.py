"""A whole cluster, PostgreSQL, or everything at once is killed -9, under load."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import requests

from tests.faults.observed import Observed
from tests.faults.promises import insist
from tests.operation.installation import eventually, kill
from tests.product import Flow, Product, Subscribed
from tests.receivers import OK, Receiver, Slow

LANES = 4
# A cluster takes Python's and Django's time to start, on a machine that may be busy.
CLUSTER_STARTS_SECONDS = 20.0


class Load:
    """A publisher that goes on whatever happens: what it got no answer for it asks again, with the same key."""

    def __init__(self, flow: Flow) -> None:
        self._flow = flow
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._publish_on, name="load")
        self.accepted: list[str] = []
        self.refused: list[requests.Response] = []

    @contextmanager
    def running(self) -> Iterator["Load"]:
        self._thread.start()
        try:
            yield self
        finally:
            self._is_over.set()
            self._thread.join()

    def wait_for_count(self, count: int) -> None:
        eventually(lambda: len(self.accepted) >= count, f"{count} messages are accepted")

    def _publish_on(self) -> None:
        number = 0
        while not self._is_over.is_set():
            if self._publish(number):
                number += 1

    def _publish(self, number: int) -> bool:
        try:
            answer = self._flow.publisher.ask(
                "POST",
                f"events/{self._flow.event_type}/messages",
                body=b"%d" % number,
                headers={"Content-Type": "application/json", "Idempotency-Key": f"message {number}"},
            )
        except requests.RequestException:
            return False
        if answer.ok:
            self.accepted.append(answer.json()["id"])
        else:
            self.refused.append(answer)
        return answer.ok


def subscribed(flow: Flow, receiver: Receiver) -> list[Subscribed]:
    lanes = [flow.subscribe(receiver.endpoint(f"lane-{number}")) for number in range(LANES)]
    for of in lanes:
        of.endpoint.always(Slow(0.005))
    return lanes


def insist_on_all(flow: Flow, lanes: list[Subscribed], published: list[str], *, crashes: int = 1) -> None:
    for of in lanes:
        of.endpoint.always(OK)
    for of in lanes:
        of.endpoint.wait_for_last(published[-1], seconds=60)
        insist(flow, of, published, crashes=crashes)


def test_a_killed_cluster_loses_nothing(
    flow: Flow, receiver: Receiver, product: Product, capsys: pytest.CaptureFixture[str]
) -> None:
    lanes = subscribed(flow, receiver)
    published = flow.publish_numbered(400)
    lanes[0].endpoint.wait_for_count(50)
    kill(*product.whole("senders"))
    killed_at = time.monotonic()
    pause = lanes[0].endpoint.wait_for_later(killed_at + 0.05).at - killed_at
    with capsys.disabled():
        print(f"\nthe lanes of a killed cluster flow again after {pause:.2f} s")
    assert pause < CLUSTER_STARTS_SECONDS
    insist_on_all(flow, lanes, published)


def test_everything_killed_at_once_loses_nothing(flow: Flow, receiver: Receiver, product: Product) -> None:
    lanes = subscribed(flow, receiver)
    with Load(flow).running() as load:
        load.wait_for_count(50)
        product.kill_all()
        before = len(load.accepted)
        product.start()
        load.wait_for_count(before + 20)
    insist_on_all(flow, lanes, load.accepted)


def test_postgresql_killed_under_load_loses_nothing(
    flow: Flow, receiver: Receiver, product: Product, observed: Observed
) -> None:
    lanes = subscribed(flow, receiver)
    with Load(flow).running() as load:
        load.wait_for_count(50)
        kill(product.postmaster())
        before = len(load.accepted)
        load.wait_for_count(before + 50)
    # A publisher is told that the database is away, and when to ask again.
    for refusal in load.refused:
        assert refusal.status_code == 503
        assert refusal.headers["content-type"] == "application/problem+json"
        assert refusal.headers["retry-after"]
    insist_on_all(flow, lanes, load.accepted)
    eventually(lambda: len(observed.senders()) == 2, "both senders are back")


def test_a_killed_web_server_loses_nothing(flow: Flow, receiver: Receiver, product: Product) -> None:
    lanes = subscribed(flow, receiver)
    with Load(flow).running() as load:
        load.wait_for_count(50)
        kill(*product.whole("web"))
        before = len(load.accepted)
        load.wait_for_count(before + 50)
    insist_on_all(flow, lanes, load.accepted, crashes=0)
