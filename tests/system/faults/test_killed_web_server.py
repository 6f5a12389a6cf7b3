"""The web server is killed -9 while posts or a batch are being stored, or just after that.

The windows: before the commit, where nothing may be stored by halves; and between the commit and
the answer, where everything is stored and the publisher has no answer. In both cases it repeats the
requests with the same keys, and each message is published once.
"""

import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import psycopg
import pytest
import requests

from config.up import processes
from tests.support.product import Flow, Product, StartedSubscription
from tests.support.receivers import Receiver
from tests.support.rest import ProductClient
from tests.system.faults.promises import insist
from tests.system.flows.test_replies import post as reply
from tests.system.operation.installation import eventually, kill

Publish = Callable[[Flow], list[str]]

MESSAGES = 5
LOCK = 20_261_124
# Delays each commit that stores messages of the event type.
GATE = """
    CREATE FUNCTION test_gate() RETURNS trigger LANGUAGE plpgsql SET lock_timeout = 0 AS $$
    BEGIN
        PERFORM pg_advisory_xact_lock_shared({lock});
        RETURN NULL;
    END $$;
    CREATE CONSTRAINT TRIGGER test_gate AFTER INSERT ON delivery_message
    DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW WHEN (NEW.event_type_id = {event_type}) EXECUTE FUNCTION test_gate();
"""
# The lock is a constant.
AT_THE_GATE = (
    f"SELECT count(*) FROM pg_locks "  # noqa: S608
    f"WHERE locktype = 'advisory' AND NOT granted AND objid = {LOCK}"
)


class Gate:
    """While it is closed, commits of the flow's messages wait."""

    def __init__(self, own: psycopg.Connection, event_type: str) -> None:
        self._own = own
        (self._id,) = self._row(
            "SELECT id FROM subscriptions_eventtype WHERE name = %s", event_type
        )
        own.execute(f"SELECT pg_advisory_lock({LOCK})")
        own.execute(GATE.format(lock=LOCK, event_type=self._id))

    def wait_for_one(self) -> None:
        eventually(lambda: self._row(AT_THE_GATE) != (0,), "a commit waits")

    def open(self) -> None:
        self._own.execute(f"SELECT pg_advisory_unlock({LOCK})")
        eventually(lambda: self._row(AT_THE_GATE) == (0,), "no commit waits")

    def stored(self) -> int:
        (count,) = self._row(
            "SELECT count(*) FROM delivery_message WHERE event_type_id = %s", self._id
        )
        assert isinstance(count, int)
        return count

    def remove(self) -> None:
        self._own.execute("SELECT pg_advisory_unlock_all()")
        self._own.execute("DROP FUNCTION test_gate CASCADE")

    def _row(self, text: str, *values: object) -> tuple[object, ...]:
        row: tuple[object, ...] | None = self._own.execute(text.encode(), values).fetchone()
        assert row is not None
        return row


@contextmanager
def gate(flow: Flow) -> Iterator[Gate]:
    with flow.product.connect() as own:
        closed = Gate(own, flow.event_type)
        try:
            yield closed
        finally:
            closed.remove()


def publish_batch(flow: Flow) -> list[str]:
    items = [
        {"event": flow.event_type, "body": number, "idempotency_key": f"key {number}"}
        for number in range(MESSAGES)
    ]
    return [result["id"] for result in _of_its_own(flow).publish_batch(items)]


def publish_singly(flow: Flow) -> list[str]:
    """Publish all messages at the same moment, each by its own request."""
    with ThreadPoolExecutor(MESSAGES) as pool:
        return sorted(
            pool.map(lambda number: _publish_one(flow, number), range(MESSAGES)), key=_number
        )


def _publish_one(flow: Flow, number: int) -> str:
    sent = {"Idempotency_Key": f"key {number}"}
    id: str = _of_its_own(flow).publish(flow.event_type, b"%d" % number, **sent)["id"]
    return id


def _of_its_own(flow: Flow) -> ProductClient:
    """Return a publisher for one thread."""
    return ProductClient(flow.publisher.base_url, flow.publisher.key)


def _number(public_id: str) -> int:
    return int(public_id.removeprefix("msg_"))


def insist_on_one_of_each(flow: Flow, of: StartedSubscription, publish: Publish) -> None:
    eventually(flow.product.is_ready, "the web server is back")
    published = publish(flow)
    assert publish(flow) == published
    assert len(list(flow.rest.all("messages", event_type=flow.event_type))) == MESSAGES
    insist(flow, of, published, crashes=0)


@pytest.mark.parametrize(
    "publish", [publish_batch, pytest.param(publish_singly, marks=pytest.mark.slow)]
)
def test_a_kill_before_the_commit_stores_nothing(
    flow: Flow, product: Product, receiver: Receiver, publish: Publish
) -> None:
    of = flow.subscribe(receiver.endpoint("lane"))
    with gate(flow) as closed, ThreadPoolExecutor(1) as pool:
        unanswered = pool.submit(publish, flow)
        closed.wait_for_one()
        kill(*product.whole("web"))
        assert isinstance(unanswered.exception(), requests.ConnectionError)
        closed.open()
        if publish is publish_batch:
            assert closed.stored() in (0, MESSAGES)
    insist_on_one_of_each(flow, of, publish)


@pytest.mark.parametrize(
    "publish", [publish_batch, pytest.param(publish_singly, marks=pytest.mark.slow)]
)
def test_after_a_kill_between_commit_and_answer_a_retry_gets_the_stored_answer(
    flow: Flow, product: Product, receiver: Receiver, publish: Publish
) -> None:
    of = flow.subscribe(receiver.endpoint("lane"))
    with gate(flow) as closed, ThreadPoolExecutor(1) as pool:
        unanswered = pool.submit(publish, flow)
        closed.wait_for_one()
        web = product.whole("web")
        processes.send_signal(signal.SIGSTOP, web)
        try:
            closed.open()
            least = MESSAGES if publish is publish_batch else 1
            eventually(lambda: closed.stored() >= least, "it is committed")
        finally:
            kill(*web)
        assert isinstance(unanswered.exception(), requests.ConnectionError)
    insist_on_one_of_each(flow, of, publish)


def test_a_reply_whose_202_was_lost_by_a_kill_is_repeated_and_published_once(
    flow: Flow, product: Product, receiver: Receiver
) -> None:
    asked, made = flow.subscribe(receiver.endpoint("asked")), product.flow("Made")
    of = made.subscribe(receiver.endpoint("wanting"))
    flow.publish(ReplyTo=made.event_type)
    (request,) = asked.endpoint.wait_for_count(1)
    with gate(made) as closed, ThreadPoolExecutor(1) as pool:
        unanswered = pool.submit(reply, request)
        closed.wait_for_one()
        web = product.whole("web")
        processes.send_signal(signal.SIGSTOP, web)
        try:
            closed.open()
            eventually(lambda: closed.stored() == 1, "it is committed")
        finally:
            kill(*web)
        assert isinstance(unanswered.exception(), requests.ConnectionError)
    eventually(product.is_ready, "the web server is back")
    answer = reply(request)
    assert answer.status_code == 202
    assert len(list(made.rest.all("messages", event_type=made.event_type))) == 1
    insist(made, of, [answer.json()["id"]], crashes=0)
