"""`publish`: the items from its input lines, and its output if it has to stop."""

import io
import os
import signal
import subprocess
import sys
from typing import Any

import orjson
import pytest
from django.core.management import CommandError, call_command

from config.env import CHECKOUT
from delivery.incoming.batch_items import item_of
from tests.support.receivers import Answer, Behaviour, Hold, Receiver, ReceiverEndpoint
from tests.support.receivers.received import Received

EVENT = "Test.Published"


def accepting(received: Received) -> Behaviour:
    results = [{"id": "msg_1", "deliveries": 0}] * len(received.body.splitlines())
    return Answer(202, body=orjson.dumps({"results": results}))


@pytest.fixture
def server(receiver: Receiver) -> ReceiverEndpoint:
    """An endpoint that accepts every publication."""
    endpoint = receiver.endpoint("api/v1/messages:batch")
    endpoint.follow(accepting)
    return endpoint


def base_url(server: ReceiverEndpoint) -> str:
    return server.url.removesuffix("/api/v1/messages:batch")


def publish(server: ReceiverEndpoint, *lines: str, **options: Any) -> None:
    file = io.BytesIO("\n".join(lines).encode())
    call_command(
        "publish",
        EVENT,
        file=file,
        key="key",
        url=base_url(server),
        stdout=io.StringIO(),
        **options,
    )


def items(server: ReceiverEndpoint) -> list[str]:
    return [line for request in server.received for line in request.body.decode().splitlines()]


def keys(server: ReceiverEndpoint) -> list[str | None]:
    return [item_of(item).idempotency_key for item in items(server)]


def test_each_line_has_a_key_of_its_own(server: ReceiverEndpoint) -> None:
    publish(server, "1", "", "1", batch=1)
    first, third = keys(server)
    assert first is not None
    assert third == f"{first.removesuffix('-1')}-3"


def test_the_keys_of_two_calls_differ(server: ReceiverEndpoint) -> None:
    publish(server, "1")
    publish(server, "1")
    assert len(set(keys(server))) == 2


def test_a_continued_call_uses_the_same_keys(server: ReceiverEndpoint) -> None:
    publish(server, "1", "2", "3", from_line=2, idempotency_prefix="before")
    assert keys(server) == ["before-2", "before-3"]


@pytest.mark.parametrize(
    "line",
    ['{"body": 1, "idempotency_key": "own"}', '{"headers": {"Idempotency_KEY": "own"}, "body": 1}'],
)
def test_a_key_that_a_line_has_is_kept(server: ReceiverEndpoint, line: str) -> None:
    publish(server, line, envelope=True)
    assert "own" in items(server)[0]
    assert keys(server) in (["own"], [None])


@pytest.mark.parametrize("line", ['{"body": 1}', '{"body": 1, "idempotency_key": null}'])
def test_a_line_without_a_key_gets_one(server: ReceiverEndpoint, line: str) -> None:
    publish(server, line, envelope=True, idempotency_prefix="p")
    assert keys(server) == ["p-1"]


@pytest.mark.parametrize("body", ["12345678901234567890123", "1e5", '{ "é":"\\u00e9", "a": 1.0 }'])
@pytest.mark.parametrize("envelope", [True, False], ids=["envelope", "body"])
def test_the_bytes_of_a_body_are_kept(server: ReceiverEndpoint, body: str, envelope: bool) -> None:
    publish(server, f'{{"body": {body}}}' if envelope else body, envelope=envelope)
    (item,) = map(item_of, items(server))
    assert (item.event, item.body.decode()) == (EVENT, body)


def test_a_line_cannot_pass_for_more_than_a_body(server: ReceiverEndpoint) -> None:
    with pytest.raises(CommandError, match="line 1 is not JSON"):
        publish(server, '1, "idempotency_key": null')
    assert server.received == []


def test_a_refusal_names_the_line(server: ReceiverEndpoint) -> None:
    problem = {
        "detail": "body: too small",
        "index": 1,
        "errors": [{"field": "body", "detail": "too small"}],
    }
    server.next(accepting(Received(at=0, method="", path="", headers={}, body=b"1\n2", tries=1)))
    server.next(Answer(422, body=orjson.dumps(problem)))
    with pytest.raises(CommandError) as caught:
        publish(server, "1", "2", "", "3", "4", batch=2, idempotency_prefix="p")
    said = str(caught.value)
    assert said.startswith("line 5: body: too small")
    assert "Accepted: 2 messages. Go on with --from-line 3 --idempotency-prefix p " in said


def test_ctrl_c_prints_the_line_to_continue_with(server: ReceiverEndpoint) -> None:
    server.next(accepting(Received(at=0, method="", path="", headers={}, body=b"1\n2", tries=1)))
    server.always(Hold())
    command = ["publish", EVENT, "--key", "key", "--url", base_url(server), "--batch", "2"]
    with subprocess.Popen(
        [sys.executable, str(CHECKOUT / "manage.py"), *command],
        env=os.environ,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdin is not None
            process.stdin.write("1\n2\n3\n4\n")
            process.stdin.flush()
            server.wait_for_count(2)
            process.send_signal(signal.SIGINT)
            _, said = process.communicate(timeout=30)
        finally:
            process.kill()
    assert process.returncode == 1
    assert "stopped" in said
    assert "Accepted: 2 messages. Go on with --from-line 3 --idempotency-prefix " in said
