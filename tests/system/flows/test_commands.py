"""The commands that talk to a running Inturn, each in a process of its own."""

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from typing import Any

import aiohttp
import orjson
import pytest
from aiohttp import web

from config.env import CHECKOUT
from tests.support.product import Flow, Product
from tests.support.receivers import Answer, Behaviour, Close, Receiver
from tests.support.surroundings import NETWORKS
from tests.system.flows.proxy import dropping_proxy


def run(
    product: Product, *command: str, said: str = "", **changed: str
) -> subprocess.CompletedProcess[str]:
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


def counts(product: Product) -> dict[str, int]:
    """Return the number of rows of each kind, without the messages that Inturn itself publishes.

    It reports earlier tests' failures and blocked lanes at any time.
    """
    statement = """
        SELECT 'messages', count(*) FROM delivery_message JOIN subscriptions_eventtype AS type
            ON type.id = event_type_id WHERE type.name NOT LIKE 'Inturn.%'
        UNION ALL SELECT 'subscribers', count(*) FROM subscriptions_subscriber
        UNION ALL SELECT 'event types', count(*) FROM subscriptions_eventtype
        UNION ALL SELECT 'keys', count(*) FROM subscriptions_apikey
    """
    with product.connect() as connection:
        return dict(connection.execute(statement).fetchall())


def publish(flow: Flow, said: str, *options: str) -> subprocess.CompletedProcess[str]:
    return run(
        flow.product, "publish", flow.event_type, "--key", flow.publisher.key, *options, said=said
    )


@dataclass(frozen=True, slots=True)
class Relay:
    """Forwards requests to Inturn; returns its answer, or loses it and returns another."""

    product: Product
    instead: Behaviour | None = None
    status: None = None

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        headers = {name: request.headers[name] for name in ("Authorization", "Content-Type")}
        url = f"{self.product.rest.base_url}{request.path}"
        async with (
            aiohttp.ClientSession() as session,
            session.post(url, data=await request.read(), headers=headers) as answer,
        ):
            body = await answer.read()
        return await (self.instead or Answer(answer.status, body=body)).answer(request)


def test_smoke_sends_one_message_and_cleans_up(product: Product) -> None:
    before = counts(product)
    ended = run(product, "smoke")
    assert (ended.returncode, ended.stdout.splitlines()[-1]) == (0, "ok"), ended.stderr
    assert counts(product) == before


@pytest.mark.slow
def test_smoke_asks_the_server_whether_the_loopback_is_allowed(product: Product) -> None:
    ended = run(product, "smoke", INTURN_ALLOWED_NETWORKS="")
    assert ended.returncode == 0, ended.stderr


@pytest.mark.slow
def test_smoke_reports_a_server_that_does_not_answer(product: Product) -> None:
    ended = run(product, "smoke", "--url", "http://127.0.0.1:9")
    assert ended.returncode == 1
    assert "does not answer" in ended.stderr


def test_doctor_finds_the_header_and_leaves_nothing_behind(product: Product) -> None:
    before = counts(product)
    ended = run(product, "doctor", "--json")
    found = {finding["check"]: finding["severity"] for finding in orjson.loads(ended.stdout)}
    assert (found["proxy"], found["FILTER_STRING"], found["clock"]) == ("OK", "OK", "OK"), (
        ended.stdout
    )
    assert counts(product) == before


@pytest.mark.slow
def test_doctor_finds_a_proxy_that_drops_names_with_underscores(product: Product) -> None:
    with dropping_proxy(product.rest.base_url) as url:
        ended = run(product, "doctor", "--url", url)
    assert ended.returncode == 1
    worst, advice, *_ = ended.stdout.splitlines()
    assert worst.split() == [
        "FAILED",
        "FILTER_STRING",
        "the",
        "header",
        "is",
        "lost",
        "on",
        "the",
        "way",
        "to",
        "Inturn",
    ]
    assert "underscores_in_headers on" in advice


def test_publish_sends_each_line_byte_for_byte_and_in_order(flow: Flow, receiver: Receiver) -> None:
    subscribed = flow.subscribe(receiver.endpoint("hook"))
    lines = [f'{{ "number":{number},  "é": 1.0 }}' for number in range(25)]
    ended = publish(flow, "\n".join(lines), "--batch", "10")
    assert (ended.returncode, ended.stdout) == (0, "25 messages accepted\n"), ended.stderr
    received = subscribed.endpoint.wait_for_count(25)
    assert [request.body.decode() for request in received] == lines


@pytest.mark.slow
def test_publish_accepts_whole_messages_with_headers_and_keys(
    flow: Flow, receiver: Receiver
) -> None:
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


@pytest.mark.slow
@pytest.mark.parametrize(
    ("said", "words"),
    [('{"a": 1}\n{"a":\n{"b": 2}', "--from-line 2"), ("", "0 messages accepted")],
)
def test_publish_reports_its_progress(flow: Flow, said: str, words: str) -> None:
    ended = publish(flow, said, "--batch", "1")
    assert words in ended.stdout + ended.stderr


@pytest.mark.slow
def test_publish_reports_a_wrong_key(flow: Flow) -> None:
    ended = run(flow.product, "publish", flow.event_type, "--key", "wrong", said="{}")
    assert ended.returncode == 1
    assert "key" in ended.stderr


@pytest.mark.slow
def test_publish_continues_after_the_last_accepted_batch(flow: Flow, receiver: Receiver) -> None:
    subscribed = flow.subscribe(receiver.endpoint("hook"))
    lines = [f'{{"body": {{"number": {number}}}}}' for number in range(1, 151)]
    mended = "\n".join(lines)
    lines[119] = '{"body": '
    ended = publish(flow, "\n".join(lines), "--envelope")
    assert "line 120 is not JSON" in ended.stderr
    assert "Accepted: 100 messages" in ended.stderr
    advice = re.findall(r"(--from-line|--idempotency-prefix) (\w+)", ended.stderr)
    assert advice[0] == ("--from-line", "101")
    ended = publish(flow, mended, "--envelope", *(word for pair in advice for word in pair))
    assert ended.stdout == "50 messages accepted\n", ended.stderr
    received = subscribed.endpoint.wait_for_count(150)
    assert [orjson.loads(request.body)["number"] for request in received] == list(range(1, 151))


@pytest.mark.parametrize(
    "instead",
    [Answer(503, headers={"Retry-After": "0"}), pytest.param(Close(), marks=pytest.mark.slow)],
    ids=["503", "no answer"],
)
def test_publish_does_not_repeat_lines_stored_before_the_answer_was_lost(
    flow: Flow, receiver: Receiver, instead: Behaviour
) -> None:
    subscribed = flow.subscribe(receiver.endpoint("hook"))
    server = receiver.endpoint("api/v1/messages:batch")
    server.always(Relay(flow.product))
    server.next(Relay(flow.product, instead=instead))
    base_url = f"http://127.0.0.1:{receiver.port}"
    ended = publish(flow, "1\n2\n3", "--batch", "2", "--url", base_url)
    assert (ended.returncode, ended.stdout) == (0, "3 messages accepted\n"), ended.stderr
    assert len(server.received) == 3
    flow.wait_until_settled(subscribed)
    assert [request.body for request in subscribed.endpoint.received] == [b"1", b"2", b"3"]
