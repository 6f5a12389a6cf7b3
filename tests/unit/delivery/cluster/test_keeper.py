"""Each worker of a cluster runs the cluster's loop until Inturn stops."""

from collections.abc import Callable, Iterator

import pytest
from django_q.conf import Conf
from django_q.models import OrmQ
from django_q.signals import post_spawn, pre_execute
from django_q.signing import SignedPackage

from delivery.cluster.keeper import NO_TIMEOUT, Keeper
from delivery.cluster.stop_event import stopping

# Starting a worker closes the connection of its starter.
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _signals() -> Iterator[None]:
    """Connect a keeper's signals for one test only."""
    kept = post_spawn.receivers, pre_execute.receivers
    yield
    stopping.clear()
    post_spawn.receivers, pre_execute.receivers = kept
    for signal in (post_spawn, pre_execute):
        signal.sender_receivers_cache.clear()


def keeper(loop: Callable[[], None] = stopping.set) -> Keeper:
    return Keeper([loop])


def test_a_starting_worker_has_a_task_without_time_out_whose_row_is_deleted_at_its_start() -> None:
    first = keeper()
    first.begin()
    post_spawn.send(sender="test")
    row = OrmQ.objects.get(key=Conf.CLUSTER_NAME)
    assert SignedPackage.loads(row.payload)["timeout"] == NO_TIMEOUT
    # As a worker does with a task that it has taken from the queue.
    pre_execute.send(sender="test", func=None, task={"ack_id": row.pk})
    assert not OrmQ.objects.exists()


def test_a_loop_that_fails_begins_again(caplog: pytest.LogCaptureFixture) -> None:
    times: list[int] = []

    def fail_twice() -> None:
        times.append(1)
        if len(times) < 3:
            raise ZeroDivisionError
        stopping.set()

    keeper(fail_twice).work()
    assert len(times) == 3
    assert caplog.text.count("a cluster's loop failed") == 2


def test_a_stopping_cluster_queues_nothing_and_starts_no_loop() -> None:
    stopping.set()
    first = keeper(lambda: pytest.fail("it began"))
    first.begin()
    first.work()
    post_spawn.send(sender="test")
    assert not OrmQ.objects.exists()
