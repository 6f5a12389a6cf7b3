"""The receiver of the benchmark counts lost, duplicated and misordered messages."""

import http.client
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.bench import children
from tests.bench.children import ReceiverProcess
from tests.bench.receiver import out_of_order
from tests.bench.results import BenchReceipt, BenchResult


@pytest.fixture(scope="module")
def running() -> Iterator[ReceiverProcess]:
    with children.receiver() as receiver:
        yield receiver


@pytest.fixture
def receiver(running: ReceiverProcess) -> ReceiverProcess:
    running.reset()
    return running


def send(receiver: ReceiverProcess, path: str, *ids: int) -> None:
    place = urlsplit(receiver.url)
    connection = http.client.HTTPConnection(str(place.hostname), place.port, timeout=5)
    for id in ids:
        connection.request("POST", path, body=b"{}", headers={"webhook-id": f"msg_{id}"})
        assert connection.getresponse().read() == b"ok"
    connection.close()


def counts(receiver: ReceiverProcess) -> dict[str, Any]:
    tally = receiver.tally()
    return {name: tally[name] for name in ("requests", "got", "duplicated", "out_of_order")}


def test_each_path_has_an_order_of_its_own(receiver: ReceiverProcess) -> None:
    send(receiver, "/lane/1", 1, 2, 3)
    send(receiver, "/lane/2", 1, 2)
    assert counts(receiver) == {"requests": 5, "got": 5, "duplicated": 0, "out_of_order": 0}


def test_a_repeated_delivery_is_counted_once_and_reported(receiver: ReceiverProcess) -> None:
    send(receiver, "/lane/1", 1, 2, 1, 3)
    assert counts(receiver) == {"requests": 4, "got": 3, "duplicated": 1, "out_of_order": 0}


def test_a_delivery_after_a_later_one_is_reported(receiver: ReceiverProcess) -> None:
    send(receiver, "/lane/1", 1, 3, 2, 4)
    assert counts(receiver) == {"requests": 4, "got": 4, "duplicated": 0, "out_of_order": 1}


def test_a_reset_forgets_all(receiver: ReceiverProcess) -> None:
    send(receiver, "/lane/1", 1)
    receiver.reset()
    assert (receiver.count(), counts(receiver)["got"]) == (0, 0)


@pytest.mark.parametrize(
    ("ids", "wrong"), [([], 0), ([1, 2, 3], 0), ([3, 1, 2], 2), ([2, 1, 2, 1], 1), ([1, 1, 2], 0)]
)
def test_only_first_arrivals_are_held_against_the_order(ids: list[int], wrong: int) -> None:
    assert out_of_order(ids) == wrong


@pytest.mark.parametrize(
    "wrong", [BenchReceipt(lost=1), BenchReceipt(duplicated=1), BenchReceipt(out_of_order=1)]
)
def test_one_wrong_delivery_fails_the_run(wrong: BenchReceipt) -> None:
    right = BenchReceipt(expected=10, got=10)
    assert (right + right).is_right
    assert not (right + wrong + right).is_right


@pytest.mark.parametrize(
    ("value", "is_at_most", "is_met"),
    [(50, False, True), (39, False, False), (39, True, True), (50, True, False)],
)
def test_a_result_passes_on_the_right_side_of_its_limit(
    value: float, is_at_most: bool, is_met: bool
) -> None:
    result = BenchResult(
        name="x",
        value=value,
        unit="/s",
        limit=100,
        ratio=value / 100,
        wanted=0.4,
        is_at_most=is_at_most,
    )
    assert result.is_met is is_met
