"""`listen`: its printed, forwarded, acknowledged and released messages of a mailbox."""

import io
import os
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from typing import Any

import orjson
import pytest
from django.core.management import CommandError, call_command
from pytest_django.live_server_helper import LiveServer

from config.env import CHECKOUT
from config.version import version
from delivery.models import Delivery
from delivery.states import OutcomeClass, Status
from subscriptions.models import Mode, Scope, Subscription
from tests.support import factories
from tests.support.receivers import Answer, Hold, Receiver

pytestmark = pytest.mark.django_db(transaction=True)


@dataclass(slots=True)
class Depot:
    """A subscriber with a mailbox, and its key."""

    url: str
    subscription: Subscription
    key: str
    out: io.StringIO = field(default_factory=io.StringIO)
    err: io.StringIO = field(default_factory=io.StringIO)

    def put(self, body: bytes = b'{"n": 1}', **fields: Any) -> Delivery:
        message = factories.message(body, event_type=self.subscription.event_type, **fields)
        return factories.delivery(subscription=self.subscription, message=message)

    def listen(self, **options: Any) -> None:
        given = {"url": self.url, "key": self.key, "stdout": self.out, "stderr": self.err} | options
        call_command("listen", "depot", **given)

    def statuses(self) -> list[str]:
        return list(Delivery.objects.order_by("id").values_list("status", flat=True))


@pytest.fixture
def depot(live_server: LiveServer) -> Depot:
    subscriber = factories.subscriber("depot")
    _, key = factories.api_key(Scope.FETCH, subscriber=subscriber)
    subscription = factories.subscription(
        subscriber=subscriber, mode=Mode.PULL, event_type=factories.event_type("Parcel.Left")
    )
    return Depot(live_server.url, subscription, key)


def test_listen_prints_and_acknowledges_each_message(depot: Depot) -> None:
    first, second = (
        depot.put(b'{"n":  1}'),
        depot.put(b"\xff\x00", content_type="application/octet-stream"),
    )
    depot.listen(once=True)
    lines = depot.out.getvalue().splitlines()
    assert lines[0].startswith(f"msg_{first.message_id}  Parcel.Left  20")
    assert lines[1] == '{"n":  1}'
    assert lines[3].startswith(f"msg_{second.message_id}")
    assert lines[4].startswith("00000000  ff 00")
    assert depot.statuses() == ["DELIVERED", "DELIVERED"]
    assert "2 acknowledged" in depot.err.getvalue()


def test_with_json_each_message_is_one_line_with_its_exact_body(depot: Depot) -> None:
    depot.put(
        b'{\n "n": 12345678901234567890123 }',
        headers={"x-trace": "abc", "content-type": "application/json"},
    )
    depot.put(b"\xff", content_type="image/png", headers={"content-type": "image/png"})
    depot.listen(once=True, json=True)
    first, second = depot.out.getvalue().splitlines()
    assert '"body":{  "n": 12345678901234567890123 }' in first
    assert orjson.loads(first)["headers"]["x-trace"] == "abc"
    assert orjson.loads(second)["body_base64"] == "/w=="


def test_no_message_controls_the_terminal(depot: Depot) -> None:
    depot.put(b"x\x1b]0;owned\x07 \x1b[31mred", content_type="text/plain")
    depot.put('{"k": "\x9b31m\u202e\x7f"}'.encode())
    depot.listen(no_ack=True)
    assert r"x\x1b]0;owned\x07 \x1b[31mred" in depot.out.getvalue()
    assert r'{"k": "\x9b31m\u202e\x7f"}' in depot.out.getvalue()
    depot.listen(json=True, once=True)
    assert not set(depot.out.getvalue()) & set("\x1b\x07\x9b\x7f\u202e")
    last = depot.out.getvalue().splitlines()[-1]
    assert orjson.loads(last)["body"] == {"k": "\x9b31m\u202e\x7f"}


def test_normal_output_is_not_coloured_as_an_error(depot: Depot) -> None:
    depot.put()
    depot.listen(once=True, force_color=True)
    assert "1 acknowledged, 0 given back" in depot.err.getvalue()
    assert "\x1b" not in depot.err.getvalue()


def test_listen_ends_after_max_messages(depot: Depot) -> None:
    for _ in range(3):
        depot.put()
    depot.listen(max=2)
    assert depot.statuses() == ["DELIVERED", "DELIVERED", "PENDING"]


def test_without_acknowledging_listen_gives_messages_back(depot: Depot) -> None:
    for _ in range(3):
        depot.put()
    depot.listen(no_ack=True, max=2)
    assert depot.out.getvalue().count("Parcel.Left") == 2
    assert depot.statuses() == ["PENDING"] * 3
    assert list(Delivery.objects.order_by("id").values_list("receive_count", flat=True)) == [
        1,
        1,
        0,
    ]
    assert "0 acknowledged, 2 given back" in depot.err.getvalue()


def test_listen_forwards_the_request_of_a_push(depot: Depot, receiver: Receiver) -> None:
    hook = receiver.endpoint("hook")
    headers = {
        "content-type": "text/plain; charset=utf-8",
        "x-trace": "grüße",
        "user-agent": "shop",
        "accept": "*/*",
    }
    delivery = depot.put("grüße".encode(), content_type=headers["content-type"], headers=headers)
    depot.listen(once=True, forward=hook.url)
    (got,) = hook.received
    assert (got.method, got.body, got.id, got.attempt) == (
        "POST",
        "grüße".encode(),
        f"msg_{delivery.message_id}",
        1,
    )
    assert got.headers["content-type"] == "text/plain; charset=utf-8"
    assert got.headers["inturn-event"] == "Parcel.Left"
    assert got.headers["user-agent"] == f"Inturn/{version()}"
    assert got.headers["x-trace"].encode("utf-8", "surrogateescape").decode() == "grüße"
    assert depot.statuses() == ["DELIVERED"]


def test_a_message_refused_by_the_url_is_released(depot: Depot, receiver: Receiver) -> None:
    hook = receiver.endpoint("hook")
    hook.next(Answer(500))
    depot.put()
    depot.listen(once=True, forward=hook.url)
    row = Delivery.objects.get()
    assert (row.status, row.history.get().outcome) == (Status.PENDING, OutcomeClass.RELEASED)
    assert row.next_attempt_at is not None
    assert "hook answered 500" in depot.err.getvalue()


def test_a_url_without_listener_is_reported(depot: Depot, receiver: Receiver) -> None:
    hook = receiver.endpoint("hook")
    receiver.refuse_connections()
    depot.put()
    depot.listen(once=True, forward=hook.url)
    assert "is it running there?" in depot.err.getvalue()
    assert depot.statuses() == ["PENDING"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"key": ""}, "INTURN_FETCH_KEY"),
        ({"key": "nonsense"}, "This key is not known"),
        ({"max": 0}, "--max must be 1 or more"),
        ({"forward": "localhost:9000"}, "--forward needs a URL"),
        ({"url": "nope"}, "--url needs the URL of an Inturn"),
        ({"url": "http://"}, "--url needs the URL of an Inturn"),
        ({"url": "http://127.0.0.1:eighty"}, "--url needs the URL of an Inturn"),
        ({"forward": "http://127.0.0.1:9/", "no_ack": True}, "leave them out"),
    ],
)
def test_errors_are_reported_with_the_next_step(
    depot: Depot, options: dict[str, Any], said: str
) -> None:
    with pytest.raises(CommandError, match=said):
        depot.listen(**options)


def test_once_does_not_wait_for_an_inturn_that_is_away(depot: Depot, receiver: Receiver) -> None:
    receiver.refuse_connections()
    with pytest.raises(
        CommandError, match=r"(?s)does not answer.*With --once it is not tried again"
    ):
        depot.listen(once=True, url=f"http://127.0.0.1:{receiver.port}")


def test_another_subscribers_key_is_refused(depot: Depot) -> None:
    depot.put()
    _, other = factories.api_key(Scope.FETCH)
    with pytest.raises(CommandError, match="opens that of its own subscriber only"):
        depot.listen(key=other)
    assert depot.statuses() == ["PENDING"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stopped_listen_releases_its_messages(depot: Depot, number: signal.Signals) -> None:
    # More than a pipe holds, so that it blocks while printing the second.
    depot.put()
    depot.put(orjson.dumps("x" * 1_000_000))
    with subprocess.Popen(
        [
            sys.executable,
            str(CHECKOUT / "manage.py"),
            "listen",
            "depot",
            "--url",
            depot.url,
            "--json",
        ],
        env=os.environ | {"INTURN_FETCH_KEY": depot.key},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            assert '"n"' in process.stdout.readline()
            # The second one's beginning: the first has been printed whole.
            assert process.stdout.read(1) == "{"
            process.send_signal(number)
            _, said = process.communicate(timeout=30)
        finally:
            process.kill()
    assert process.returncode == 0, said
    assert depot.statuses() == ["DELIVERED", "PENDING"]
    assert said.endswith("1 acknowledged, 1 given back\n")


def test_a_listen_stopped_while_forwarding_reports_the_release(
    depot: Depot, receiver: Receiver
) -> None:
    hook = receiver.endpoint("hook")
    hook.always(Hold())
    depot.put()
    with subprocess.Popen(
        [
            sys.executable,
            str(CHECKOUT / "manage.py"),
            "listen",
            "depot",
            "--url",
            depot.url,
            "--forward",
            hook.url,
        ],
        env=os.environ | {"INTURN_FETCH_KEY": depot.key},
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            hook.wait_for_count(1)
            process.send_signal(signal.SIGINT)
            _, said = process.communicate(timeout=30)
        finally:
            process.kill()
    assert process.returncode == 0, said
    assert depot.statuses() == ["PENDING"]
    assert said.endswith("0 acknowledged, 1 given back\n")
