"""`listen` on a running Inturn: it waits for messages, and survives a restart of the web server."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from config.env import CHECKOUT
from tests.support.product import Flow, Product
from tests.support.receivers import Receiver
from tests.support.rest import Json
from tests.system.operation.installation import eventually, kill


def mailbox(flow: Flow) -> tuple[str, Json]:
    """Create a subscriber with a mailbox; return its name, and its PULL subscription."""
    name = flow.subscriber("depot")
    fields = {"name": "parcels", "subscriber": name, "event_type": flow.event_type, "mode": "PULL"}
    return name, flow.rest.post("subscriptions", fields)


@contextmanager
def listening(flow: Flow, name: str, *options: str) -> Iterator[subprocess.Popen[str]]:
    key = flow.rest.post(f"subscribers/{name}/keys")["key"]
    environment = {name: value for name, value in os.environ.items() if name != "DATABASE_URL"}
    home = {
        "INTURN_HOME": str(flow.product.home),
        "PORT": str(flow.product.port),
        "INTURN_FETCH_KEY": key,
    }
    process = subprocess.Popen(
        [sys.executable, str(CHECKOUT / "manage.py"), "listen", name, *options],
        env=environment | home,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def statuses(flow: Flow, subscription: Json) -> list[str]:
    return [row["status"] for row in flow.rest.all("deliveries", subscription=subscription["id"])]


def test_listen_waits_for_later_messages(flow: Flow) -> None:
    name, subscription = mailbox(flow)
    with listening(flow, name, "--max", "2") as process:
        assert process.stderr is not None
        assert process.stdout is not None
        assert "listening to the mailbox" in process.stderr.readline()
        for number in range(2):
            id = flow.publish(b'{"number": %d}' % number)
            assert process.stdout.readline().startswith(f"{id}  {flow.event_type}")
            assert process.stdout.readline() == f'{{"number": {number}}}\n'
            assert process.stdout.readline() == "\n"
        assert process.wait(30) == 0
    assert statuses(flow, subscription) == ["DELIVERED", "DELIVERED"]


@pytest.mark.slow
def test_listen_continues_after_the_web_server_was_killed(
    product: Product, flow: Flow, receiver: Receiver
) -> None:
    name, subscription = mailbox(flow)
    hook = receiver.endpoint("hook")
    with listening(flow, name, "--forward", hook.url) as process:
        first = flow.publish()
        hook.wait_for_last(first)
        killed = product.whole("web")
        kill(product.top("web"))
        # Its worker runs for a moment longer, and would answer.
        eventually(lambda: killed.isdisjoint(product.whole("web")), "nothing is left of it")
        eventually(product.is_ready, "another web server")
        second = flow.publish()
        assert [got.id for got in hook.wait_for_last(second)] == [first, second]
        eventually(
            lambda: statuses(flow, subscription) == ["DELIVERED"] * 2, "both are acknowledged"
        )
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=30)
    assert process.returncode == 0
    assert said.count("Trying again until it answers.") == said.count("Inturn answers again.") <= 1
