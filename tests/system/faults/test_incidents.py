"""Incidents of a started product whose chores are killed, and whose chat hangs.

compare ─▶ change rows, messages, alerts ─▶ commit ─▶ the next turn
        1                              2
"""

import base64
import hashlib
from collections.abc import Iterator

import orjson
import pytest
from cryptography.fernet import Fernet

from tests.support.product import Flow, Product
from tests.support.receivers import OK, Answer, Hold, Receiver, ReceiverEndpoint
from tests.system.faults.test_killed_chores import Chores
from tests.system.flows.test_retries import policy_like
from tests.system.operation.installation import eventually, kill


def change(product: Product, statement: str, *values: object) -> None:
    with product.connect() as connection:
        connection.execute(statement, values)


@pytest.fixture
def chat(receiver: Receiver, product: Product) -> Iterator[ReceiverEndpoint]:
    """A chat that hangs, and is notified of lanes that are blocked for a second."""
    endpoint = receiver.endpoint("chat")
    endpoint.always(Hold())
    rule = (
        "UPDATE delivery_incidentrule"
        " SET after_seconds = %s, quiet_seconds = %s, chat_urls = %s WHERE kind = 'LANE'"
    )
    change(product, rule, 1, 1, encrypted(product, [endpoint.url]))
    yield endpoint
    change(product, rule, 300, 60, encrypted(product, []))


def encrypted(product: Product, value: object) -> str:
    """Return a value as the product stores it, under the key that is kept in its home."""
    key = (product.home / "encryption-keys").read_text().split()[0]
    cipher = Fernet(base64.urlsafe_b64encode(hashlib.sha256(key.encode()).digest()))
    return cipher.encrypt(orjson.dumps(value)).decode()


def test_a_blocked_lane_is_announced_once_whenever_the_chores_die(
    flow: Flow, receiver: Receiver, product: Product, chat: ReceiverEndpoint
) -> None:
    chores = Chores(product)
    # Only this test ends the pause.
    policy = policy_like(product, "strict", pause_seconds=600, pause_max_seconds=600)
    of = flow.subscribe(receiver.endpoint("hook"), policy=policy)
    reported = {
        event: flow.subscribe(
            receiver.endpoint(f"notified-{event}"),
            event_type=f"Inturn.Incident.{event}",
            header_filter_string=of.subscriber,
        )
        for event in ("Opened", "Closed")
    }
    of.endpoint.always(Answer(500))
    # At 2: the message is stored, without its deliveries.
    with chores.stopped_at("subscriptions_subscription", reported["Opened"].id):
        published = flow.publish_numbered(20)
    (opened,) = reported["Opened"].endpoint.wait_for_count(1)
    assert orjson.loads(opened.body)["message"] == published[0]
    # The chat hangs, and nothing waits for it: the lane flows, and the end is announced.
    chat.wait_for_count(1)
    of.endpoint.always(OK)
    flow.rest.post(f"lanes/{of.subscriber}/retry")
    flow.wait_until_settled(of)
    (closed,) = reported["Closed"].endpoint.wait_for_count(1)
    assert orjson.loads(closed.body)["incident"] == orjson.loads(opened.body)["incident"]
    kill(chores.worker())
    chat.always(OK)
    # The killed sender's claim is over.
    change(product, "UPDATE delivery_incidentalert SET next_at = now() WHERE sent_at IS NULL")
    eventually(lambda: unsent(product) == 0, "the chat got all")
    assert len(reported["Opened"].endpoint.received) == 1
    assert len(reported["Closed"].endpoint.received) == 1


def unsent(product: Product) -> int:
    with product.connect() as connection:
        row = connection.execute(
            "SELECT count(*) FROM delivery_incidentalert WHERE sent_at IS NULL"
        ).fetchone()
    assert row is not None
    count: int = row[0]
    return count
