"""The commands that talk to a running Inturn, each in a process of its own."""

import os
import subprocess
import sys
from typing import Any

import orjson
import pytest

from config.env import CHECKOUT
from tests.product import Flow, Product
from tests.receivers import Receiver
from tests.surroundings import NETWORKS


def run(product: Product, *command: str, said: str = "", **changed: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name != "DATABASE_URL"}
    environment |= {"INTURN_HOME": str(product.home), "PORT": str(product.port)}
    return subprocess.run(
        [sys.executable, str(CHECKOUT / "manage.py"), *command],
        env=environment | {"INTURN_ALLOWED_NETWORKS": NETWORKS} | changed,
        input=said,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def counts(product: Product) -> tuple[int, ...]:
    tables = (
        "delivery_message",
        "subscriptions_subscriber",
        "subscriptions_eventtype",
        "subscriptions_apikey",
    )
    with product.connect() as connection:
        rows = [connection.execute(f"SELECT count(*) FROM {table}".encode()).fetchone() for table in tables]  # noqa: S608 - of names above
    return tuple(int(row[0]) for row in rows if row is not None)


def publish(flow: Flow, said: str, *options: str) -> subprocess.CompletedProcess[str]:
    return run(flow.product, "publish", flow.event_type, "--key", flow.publisher.key, *options, said=said)


def test_smoke_sends_one_message_through_and_leaves_nothing_behind(product: Product) -> None:
    before = counts(product)
    ended = run(product, "smoke")
    assert (ended.returncode, ended.stdout.splitlines()[-1]) == (0, "ok"), ended.stderr
    assert counts(product) == before


def test_smoke_tells_what_to_do_when_the_loopback_is_not_allowed(product: Product) -> None:
    ended = run(product, "smoke", INTURN_ALLOWED_NETWORKS="")
    assert ended.returncode == 1
    assert "INTURN_ALLOWED_NETWORKS=127.0.0.0/8" in ended.stderr


def test_smoke_tells_when_nothing_answers(product: Product) -> None:
    ended = run(product, "smoke", "--url", "http://127.0.0.1:9")
    assert ended.returncode == 1
    assert "does not answer" in ended.stderr


def test_publish_sends_each_line_byte_for_byte_and_in_order(flow: Flow, receiver: Receiver) -> None:
    subscribed = flow.subscribe(receiver.endpoint("hook"))
    lines = [f'{{ "number":{number},  "é": 1.0 }}' for number in range(25)]
    ended = publish(flow, "\n".join(lines), "--batch", "10")
    assert (ended.returncode, ended.stdout) == (0, "25 messages accepted\n"), ended.stderr
    received = subscribed.endpoint.wait_for_count(25)
    assert [request.body.decode() for request in received] == lines


def test_publish_takes_whole_messages_with_headers_and_keys(flow: Flow, receiver: Receiver) -> None:
    subscribed = flow.subscribe(receiver.endpoint("hook"), header_filter_string="proj1")
    envelope: dict[str, Any] = {
        "headers": {"FILTER_STRING": "proj1"},
        "body": {"a": 1},
        "idempotency_key": "k",
    }
    line = orjson.dumps(envelope).decode()
    assert publish(flow, f"{line}\n{line}", "--envelope").returncode == 0
    subscribed.endpoint.wait_for_count(1)
    assert len(flow.deliveries(subscribed)) == 1


@pytest.mark.parametrize(
    ("said", "words"),
    [('{"a": 1}\n{"a":\n{"b": 2}', "--from-line 2"), ("", "0 messages accepted")],
)
def test_publish_tells_how_far_it_came(flow: Flow, said: str, words: str) -> None:
    ended = publish(flow, said, "--batch", "1")
    assert words in ended.stdout + ended.stderr


def test_publish_tells_what_was_wrong_with_the_key(flow: Flow) -> None:
    ended = run(flow.product, "publish", flow.event_type, "--key", "wrong", said="{}")
    assert ended.returncode == 1
    assert "key" in ended.stderr
