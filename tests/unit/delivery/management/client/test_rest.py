"""The client of the REST API: requests that it repeats, and those it leaves to a person."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from delivery.management.client.rest import (
    MAX_TRIES,
    MAX_TRIES_UNANSWERED,
    ClientError,
    RefusedError,
    RestClient,
    UnreachableError,
)
from tests.support.receivers import Answer, Close, Receiver, ReceiverEndpoint

BUSY = Answer(429, headers={"Retry-After": "7"})
AWAY = Answer(503, headers={"Retry-After": "5"})
DONE = Answer(200, body=b'{"done": true}')


@dataclass(slots=True)
class RecordedCaller:
    """A client, the server that it calls, and the waits it would have made."""

    client: RestClient
    server: ReceiverEndpoint
    pauses: list[float] = field(default_factory=list)

    def call(self, *, is_repeatable: bool = False) -> object:
        return self.client.call("POST", "things", body=b"{}", is_repeatable=is_repeatable)


@pytest.fixture
def caller(receiver: Receiver) -> Iterator[RecordedCaller]:
    pauses: list[float] = []
    server = receiver.endpoint("api/v1/things")
    server.always(DONE)
    base_url = server.url.removesuffix("/api/v1/things")
    with RestClient(base_url, key="key", pause=pauses.append) as client:
        yield RecordedCaller(client, server, pauses)


def test_a_postponed_call_is_repeated_after_its_time(caller: RecordedCaller) -> None:
    caller.server.next(BUSY, BUSY)
    assert caller.call() == {"done": True}
    assert caller.pauses == [7, 7]


def test_a_call_that_may_have_been_done_is_not_repeated(caller: RecordedCaller) -> None:
    caller.server.next(AWAY)
    with pytest.raises(RefusedError):
        caller.call()
    assert (len(caller.server.received), caller.pauses) == (1, [])


def test_a_call_without_an_answer_is_not_repeated(caller: RecordedCaller) -> None:
    caller.server.next(Close())
    with pytest.raises(UnreachableError):
        caller.call()
    assert (len(caller.server.received), caller.pauses) == (1, [])


def test_a_repeatable_call_is_repeated_until_it_is_answered(caller: RecordedCaller) -> None:
    caller.server.next(AWAY, Close(), Close())
    assert caller.call(is_repeatable=True) == {"done": True}
    assert caller.pauses == [5, 2, 4]


def test_reading_is_repeated(caller: RecordedCaller) -> None:
    caller.server.next(AWAY, Close())
    assert caller.client.get("things") == {"done": True}


def test_a_server_that_stays_away_is_left_to_the_person(caller: RecordedCaller) -> None:
    caller.server.always(AWAY)
    with pytest.raises(RefusedError):
        caller.call(is_repeatable=True)
    assert len(caller.server.received) == MAX_TRIES


def test_a_server_that_never_answers_is_left_to_the_person_sooner(caller: RecordedCaller) -> None:
    caller.server.always(Close())
    with pytest.raises(UnreachableError):
        caller.call(is_repeatable=True)
    assert (len(caller.server.received), caller.pauses) == (MAX_TRIES_UNANSWERED, [1, 2, 4, 8])


def test_a_refusal_is_not_repeated(caller: RecordedCaller) -> None:
    caller.server.next(Answer(400, body=b'{"detail": "There is no such field."}'))
    with pytest.raises(RefusedError, match="There is no such field"):
        caller.call(is_repeatable=True)
    assert len(caller.server.received) == 1


def test_another_server_is_recognised(caller: RecordedCaller) -> None:
    caller.server.next(Answer(200, body=b"<html>"))
    with pytest.raises(ClientError, match="does not answer as Inturn does"):
        caller.call()
