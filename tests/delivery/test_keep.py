"""A cluster has as many stints as workers: none is lost, and none is one too many."""

from collections.abc import Iterator

import pytest
from django_q.conf import Conf
from django_q.models import OrmQ
from django_q.signals import post_spawn, pre_execute

from delivery.keep import Keeper
from delivery.stopping import stopping

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _signals() -> Iterator[None]:
    """What a keeper connects is connected for one test."""
    kept = post_spawn.receivers, pre_execute.receivers
    yield
    post_spawn.receivers, pre_execute.receivers = kept
    for signal in (post_spawn, pre_execute):
        signal.sender_receivers_cache.clear()


def keeper(*, is_needed: bool = True) -> Keeper:
    return Keeper("delivery.chores.keep.run_stint", lambda: is_needed)


def waiting() -> int:
    count: int = OrmQ.objects.filter(key=Conf.CLUSTER_NAME).count()
    return count


def begin_stint() -> None:
    """As a worker does with a task that it has taken from the queue."""
    row = OrmQ.objects.filter(key=Conf.CLUSTER_NAME).order_by("id").first()
    assert row is not None
    pre_execute.send(sender="test", func=None, task={"ack_id": row.pk})


def test_a_worker_that_starts_has_a_stint_and_what_was_left_is_dropped() -> None:
    OrmQ.objects.create(key=Conf.CLUSTER_NAME, payload="left by an earlier cluster")
    other = OrmQ.objects.create(key="another machine's", payload="")
    one = keeper()
    one.begin()
    assert list(OrmQ.objects.all()) == [other]
    post_spawn.send(sender="test")
    assert waiting() == 1


def test_a_stint_that_ends_has_one_successor() -> None:
    one = keeper()
    one.begin()
    post_spawn.send(sender="test")
    for _ in range(3):
        begin_stint()
        assert waiting() == 0
        one.work()
        assert waiting() == 1


def test_one_too_many_has_none() -> None:
    one = keeper(is_needed=False)
    one.work()
    assert waiting() == 0


def test_the_last_of_a_worker_has_none_for_its_successor_queues_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Conf, "RECYCLE", 2)
    one = keeper()
    one.work()
    assert waiting() == 1
    one.work()
    assert waiting() == 1


def test_one_that_fails_has_a_successor(caplog: pytest.LogCaptureFixture) -> None:
    def fail() -> bool:
        raise ZeroDivisionError

    Keeper("delivery.chores.keep.run_stint", fail).work()
    assert "stint failed" in caplog.text
    assert waiting() == 1


def test_when_the_cluster_stops_there_is_none() -> None:
    stopping.set()
    try:
        keeper().work()
    finally:
        stopping.clear()
    assert waiting() == 0
