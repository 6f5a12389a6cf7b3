"""A listener whose Inturn goes away, is too slow, or refuses: it continues, and says so once."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import orjson
import pytest

from delivery.management.client.listener import (
    LONGEST_DELAY_SECONDS,
    MailboxListener,
    delay_seconds,
)
from delivery.management.client.mailbox import FetchedMessage, RemoteMailbox
from delivery.management.client.rest import ClientError, RefusedError, RestClient, UnreachableError
from tests.support.receivers import Answer, Behaviour, Close, Receiver, ReceiverEndpoint
from tests.support.receivers.received import Received
from tests.unit.delivery.management.client.test_mailbox import KNOWN

AWAY = Answer(503)
EMPTY = Answer(204)


def fetched_messages(*ids: str) -> Answer:
    messages = [KNOWN | {"id": id, "receipt": id, "body": 1, "receive_count": 1} for id in ids]
    return Answer(body=orjson.dumps({"messages": messages}))


def all_acknowledged(received: Received) -> Behaviour:
    receipts = orjson.loads(received.body)["receipts"]
    results = [{"receipt": receipt, "ok": True, "error": None} for receipt in receipts]
    return Answer(body=orjson.dumps({"results": results}))


@dataclass(slots=True)
class Listening:
    """A listener with its endpoints, messages and output, and the waits it would have made."""

    receiver: Receiver
    client: RestClient
    refused: set[str] = field(default_factory=set)
    taken: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    pauses: list[float] = field(default_factory=list)

    def endpoint(self, verb: str) -> ReceiverEndpoint:
        return self.receiver.endpoint(f"api/v1/mailboxes/depot/{verb}")

    def ended(self, verb: str) -> list[str]:
        found = self.endpoint(verb).received
        return [receipt for request in found for receipt in orjson.loads(request.body)["receipts"]]

    def listener(self) -> MailboxListener:
        return MailboxListener(
            mailbox=RemoteMailbox(self.client, "depot"),
            handle=self.handle,
            say=self.said.append,
            pause=self.pauses.append,
            at_once=10,
            visibility=30,
        )

    def handle(self, message: FetchedMessage) -> str:
        if message.id in self.refused:
            return "no"
        self.taken.append(message.id)
        return ""


@pytest.fixture
def listening(receiver: Receiver) -> Iterator[Listening]:
    with RestClient(f"http://127.0.0.1:{receiver.port}", key="key") as client:
        listening = Listening(receiver, client)
        listening.endpoint("next").always(EMPTY)
        for verb in ("ack", "release"):
            listening.endpoint(verb).follow(all_acknowledged)
        yield listening


def test_accepted_messages_are_acknowledged_together(listening: Listening) -> None:
    listening.endpoint("next").next(fetched_messages("a", "b"))
    listening.listener().listen(most=None, ends_when_empty=True)
    assert listening.taken == ["a", "b"]
    assert [orjson.loads(request.body) for request in listening.endpoint("ack").received] == [
        {"receipts": ["a", "b"]}
    ]


def test_an_unreachable_inturn_is_called_until_it_answers(listening: Listening) -> None:
    listening.endpoint("next").next(Close(), AWAY, Close(), fetched_messages("a"))
    listener = listening.listener()
    listener.listen(most=1, ends_when_empty=False)
    assert listener.acknowledged == 1
    assert listening.pauses == [1, 2, 4]
    assert [text.splitlines()[-1] for text in listening.said] == [
        "Trying again until it answers.",
        "Inturn answers again.",
    ]


def test_an_acknowledgement_with_a_lost_answer_is_repeated(listening: Listening) -> None:
    listening.endpoint("next").next(fetched_messages("a"))
    listening.endpoint("ack").next(Close(), Answer(502))
    listener = listening.listener()
    listener.listen(most=1, ends_when_empty=False)
    assert listening.ended("ack") == ["a", "a", "a"]
    assert (listening.taken, listener.acknowledged) == (["a"], 1)


def test_a_message_fetched_by_another_client_meanwhile_is_reported(listening: Listening) -> None:
    listening.endpoint("next").next(fetched_messages("a"))
    listening.endpoint("ack").next(
        Answer(409, body=b'{"detail": "Late: it was fetched again since."}')
    )
    listener = listening.listener()
    listener.listen(most=1, ends_when_empty=False)
    assert listener.acknowledged == 0
    assert "a was not acknowledged: Late: it was fetched again since." in listening.said[0]


def test_a_wrong_key_ends_it(listening: Listening) -> None:
    listening.endpoint("next").next(Answer(401, body=b'{"detail": "This key is not known."}'))
    with pytest.raises(RefusedError, match="This key is not known"):
        listening.listener().listen(most=None, ends_when_empty=False)


def test_a_refused_message_is_released_with_a_delay(listening: Listening) -> None:
    listening.refused = {"a"}
    listening.endpoint("next").next(fetched_messages("a", "b"))
    listener = listening.listener()
    listener.listen(most=2, ends_when_empty=False)
    assert "release?delay=2" in listening.endpoint("release").received[0].path
    assert (listening.ended("release"), listening.ended("ack")) == (["a"], ["b"])
    assert "a was not taken (no): released, and returns in 2 s" in listening.said


def test_the_delay_grows_with_each_fetch() -> None:
    assert [delay_seconds(count) for count in (1, 2, 3, 8, 9, 1000)] == [
        2,
        4,
        8,
        256,
        *[LONGEST_DELAY_SECONDS] * 2,
    ]


def test_an_output_that_refuses_everything_gets_a_pause(listening: Listening) -> None:
    listening.refused = set("abc")
    listening.endpoint("next").next(fetched_messages("a", "b", "c"))
    listening.listener().listen(most=3, ends_when_empty=False)
    assert listening.pauses == [0, 1, 2]


def test_a_server_without_long_poll_is_called_with_pauses(listening: Listening) -> None:
    listening.endpoint("next").next(EMPTY, fetched_messages("a"))
    listening.listener().listen(most=1, ends_when_empty=False)
    assert "wait=20" in listening.endpoint("next").received[0].path
    assert len(listening.pauses) == 1
    assert 0 < listening.pauses[0] <= 1


def test_at_the_end_accepted_messages_are_acknowledged_and_others_released(
    listening: Listening,
) -> None:
    listening.endpoint("next").next(fetched_messages("a", "b", "c"))
    listener = listening.listener()
    taken = listening.handle

    def interrupted(message: FetchedMessage) -> str:
        if message.id == "b":
            raise KeyboardInterrupt
        return taken(message)

    listener.handle = interrupted
    with pytest.raises(KeyboardInterrupt):
        listener.listen(most=None, ends_when_empty=False)
    listener.end()
    assert (listening.ended("ack"), listening.ended("release")) == (["a"], ["b", "c"])
    assert (listener.acknowledged, listener.released) == (1, 2)


def test_a_released_message_is_not_released_again(listening: Listening) -> None:
    def interrupted(_seconds: float) -> None:
        raise KeyboardInterrupt

    listening.refused = {"a"}
    listening.endpoint("next").next(fetched_messages("a"))
    listener = listening.listener()
    listener.pause = interrupted
    with pytest.raises(KeyboardInterrupt):
        listener.listen(most=None, ends_when_empty=False)
    listener.end()
    assert (listening.ended("release"), listener.released) == (["a"], 1)


@pytest.mark.parametrize("away", [Close(), AWAY])
def test_a_stop_does_not_wait_for_an_unreachable_inturn(
    listening: Listening, away: Behaviour
) -> None:
    listening.endpoint("next").next(fetched_messages("a"), away)
    listener = listening.listener()
    with pytest.raises((UnreachableError, RefusedError)):
        listener.listen(most=None, ends_when_empty=True)
    assert (listener.acknowledged, listening.pauses) == (1, [])


def test_a_stop_waits_after_too_many_requests(listening: Listening) -> None:
    listening.endpoint("next").next(Answer(429), fetched_messages("a"))
    listener = listening.listener()
    listener.listen(most=None, ends_when_empty=True)
    assert (listener.acknowledged, listening.pauses) == (1, [1])


def test_a_failed_release_is_reported_and_ends(listening: Listening) -> None:
    listening.endpoint("next").next(fetched_messages("a"))
    listening.endpoint("release").always(Close())
    listener = listening.listener()
    listener.look(most=1)
    listener.end()
    assert "1 fetched messages return within 30 s." in listening.said[0]


def test_another_server_is_recognised(listening: Listening) -> None:
    listening.endpoint("next").next(Answer(200, body=b"<html>"))
    with pytest.raises(ClientError, match="not Inturn"):
        listening.listener().listen(most=None, ends_when_empty=True)
