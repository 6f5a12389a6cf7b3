"""The pusher of a cluster waits for the tasks of starting workers, and for nothing else."""

import threading
from collections.abc import Iterator

import pytest
from django.db import connection

from delivery.cluster import broker
from delivery.cluster.broker import WorkersQueue, queued
from delivery.cluster.events import ForkedEvent
from delivery.cluster.stop_event import stopping


@pytest.fixture(autouse=True)
def _events() -> Iterator[None]:
    yield
    stopping.clear()
    queued.clear()


def test_an_event_stays_set_until_it_is_cleared() -> None:
    event = ForkedEvent()
    assert not event.is_set()
    for _ in range(2):
        event.set()
    assert event.wait(10)
    assert event.is_set()
    event.clear()
    assert not event.wait(0)


@pytest.mark.django_db(transaction=True)
def test_a_waiting_pusher_gets_a_task_that_is_queued_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # A pusher that does not notice the task waits for longer than the test.
    monkeypatch.setattr(broker, "LOOK_SECONDS", 600.0)
    found: list[str] = []

    def push() -> None:
        queue = WorkersQueue("one")
        while not found:
            found.extend(task for _key, task in queue.dequeue() or [])
        connection.close()

    pusher = threading.Thread(target=push, daemon=True)
    pusher.start()
    WorkersQueue("other").enqueue("of another cluster")
    WorkersQueue("one").enqueue("task")
    pusher.join(10)
    assert found == ["task"]


@pytest.mark.django_db(transaction=True)
def test_a_stopping_pusher_does_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broker, "LOOK_SECONDS", 600.0)
    stopping.set()
    assert WorkersQueue("one").dequeue() is None
