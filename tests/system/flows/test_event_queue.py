"""A client of the old Event Queue uses a started product: only the host of its address is new."""

import base64
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import pytest
import requests

from tests.support.product import Flow
from tests.system.flows.test_mailbox import Pulled, pull

TYPE = "application/vnd.comoyo.api-v20120202+json"
SECONDS = 30


@dataclass(frozen=True, slots=True)
class PerlClient:
    """Sends the requests of WebService::Telenor::GBE.

    It posts an empty object, sends the media type twice, and Basic authentication from the first
    request.
    """

    base_url: str
    queue: str
    username: str
    password: str

    def post(self, path: str) -> requests.Response:
        credentials = base64.b64encode(f"{self.username}:{self.password}".encode()).decode()
        headers = {"authorization": f"Basic {credentials}", "accept": TYPE, "content-type": TYPE}
        url = f"{self.base_url}/event/queue/{quote(self.queue, safe='')}/{path}"
        return requests.post(url, data=b"{}", headers=headers, timeout=SECONDS)

    def next_message(self) -> dict[str, Any] | None:
        answer = self.post("next")
        assert answer.status_code in {200, 204}, answer.text
        if answer.status_code == 204:
            return None
        # The client decodes only a media type that ends in "json".
        assert answer.headers["content-type"].endswith("json")
        message: dict[str, Any] = answer.json()
        return message

    def ack(self, message: dict[str, Any]) -> None:
        answer = self.post(f"ack?receiptId={quote(message['receiptId'], safe='')}")
        assert answer.status_code == 200, answer.text


def client_of(flow: Flow, mailbox: Pulled, queue: str) -> PerlClient:
    flow.rest.patch(f"subscribers/{mailbox.name}", {"queue_id": queue})
    return PerlClient(flow.rest.base_url, queue, mailbox.name, mailbox.client.key)


def test_the_perl_clients_sequence(flow: Flow) -> None:
    mailbox = pull(flow, "perl")
    client = client_of(flow, mailbox, f"{flow.event_type}:queue")
    published = flow.publish(b'{"eventName": "user.UserAnnounce", "userId": 17}')
    message = client.next_message()
    assert message is not None
    assert message["messageId"] == published
    assert message["event"] == {"eventName": "user.UserAnnounce", "userId": 17}
    (link,) = message["link"]
    assert (link["rel"], link["href"].startswith("ack?receiptId=")) == ("ack", True)
    assert client.post(link["href"]).status_code == 200
    assert client.next_message() is None
    client.ack(message)


def test_an_unacknowledged_message_comes_back_with_another_receipt(flow: Flow) -> None:
    mailbox = pull(flow, "forgetful")
    client = client_of(flow, mailbox, f"{flow.event_type}:queue")
    flow.publish()
    first = client.next_message()
    assert first is not None
    assert client.next_message() is None
    # The thirty seconds of the lease, moved in the row.
    with flow.product.connect() as connection:
        connection.execute(
            "UPDATE delivery_waiting SET lease_expires_at = now() - interval '1 second' "
            "WHERE message_id = %s",
            [int(first["messageId"].removeprefix("msg_"))],
        )
    second = client.next_message()
    assert second is not None
    assert (second["messageId"], second["receiptId"] == first["receiptId"]) == (
        first["messageId"],
        False,
    )
    assert client.post(f"ack?receiptId={first['receiptId']}").status_code == 409
    client.ack(second)


@pytest.mark.slow
def test_old_and_new_clients_empty_one_mailbox_together_and_none_gets_what_another_got(
    flow: Flow,
) -> None:
    mailbox = pull(flow, "shared")
    queue = f"{flow.event_type}:queue"
    old = [client_of(flow, mailbox, queue) for _ in range(2)]
    published = flow.publish_numbered(1_000)

    def empty_by_queue(client: PerlClient) -> list[str]:
        got = []
        while (message := client.next_message()) is not None:
            client.ack(message)
            got.append(message["messageId"])
        return got

    def empty_by_mailbox() -> list[str]:
        got = []
        while messages := mailbox.next(max=5):
            mailbox.say("ack", *messages)
            got += [message["id"] for message in messages]
        return got

    with ThreadPoolExecutor(3) as threads:
        futures = [
            *(threads.submit(empty_by_queue, client) for client in old),
            threads.submit(empty_by_mailbox),
        ]
        got = [id for future in futures for id in future.result()]
    # A client that found the rows locked by another ended early; few messages are left.
    got += empty_by_mailbox()
    assert Counter(got) == Counter(published)
