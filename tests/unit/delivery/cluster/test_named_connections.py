"""Loops that share a process: failures are isolated, and connections have distinct names."""

import threading
from collections.abc import Iterator

import pytest
from django.db import connection

from delivery.cluster.keeper import side_by_side
from delivery.cluster.named_connections import connections_of
from delivery.cluster.stop_event import stopping


@pytest.fixture(autouse=True)
def _goes_on() -> Iterator[None]:
    yield
    stopping.clear()


def test_the_first_loop_runs_in_the_main_thread_and_others_in_threads() -> None:
    both = threading.Barrier(2, timeout=10)
    threads: dict[str, threading.Thread] = {}

    def loop(name: str) -> None:
        threads[name] = threading.current_thread()
        both.wait()
        stopping.set()

    side_by_side(lambda: loop("first"), lambda: loop("other"))()
    assert threads["first"] is threading.main_thread()
    assert threads["other"] is not threading.main_thread()


def test_a_failed_loop_restarts_while_the_other_continues(caplog: pytest.LogCaptureFixture) -> None:
    has_failed = threading.Event()
    times: list[int] = []

    def fail_once() -> None:
        times.append(1)
        if len(times) == 1:
            raise ZeroDivisionError
        has_failed.set()

    def wait() -> None:
        assert has_failed.wait(10)
        stopping.set()

    side_by_side(wait, fail_once)()
    assert len(times) >= 2
    assert caplog.text.count("a cluster's loop failed") == 1


@pytest.mark.django_db(transaction=True)
def test_each_threads_connections_have_its_own_name() -> None:
    names: dict[str, str] = {}
    both = threading.Barrier(2, timeout=10)

    def name_of_connection(name: str) -> None:
        with connections_of(name, settings="SELECT 1"):
            both.wait()
            with connection.cursor() as cursor:
                cursor.execute("SHOW application_name")
                (names[name],) = cursor.fetchone() or ("",)
            both.wait()
        connection.close()

    other = threading.Thread(target=name_of_connection, args=("other",))
    other.start()
    name_of_connection("one")
    other.join()
    assert {name: text.split()[1] for name, text in names.items()} == {
        "one": "one",
        "other": "other",
    }
