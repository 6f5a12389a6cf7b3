"""Clients of mailboxes of a started product, each on a connection of its own."""

import re
import socket
import time
from http.client import HTTPResponse
from typing import Any
from urllib.parse import urlencode

import orjson
import requests

from tests.support.product import Flow, Product
from tests.support.rest import SECONDS, Json

# A client that waits so long and is answered sooner was woken.
LONG = 20
SOON = 10.0


def waiting_clients(product: Product) -> int:
    """Return the number of waiting clients in the web server's metrics; -1 without a web server."""
    try:
        metrics = requests.get(f"http://127.0.0.1:{product.port}/metrics", timeout=SECONDS).text
    except requests.ConnectionError:
        return -1
    (count,) = re.findall(r"^inturn_waiting_clients ([0-9]+)", metrics, re.MULTILINE)
    return int(count)


class ServedMailbox:
    """A mailbox with one subscription, and the publisher of its messages."""

    def __init__(self, flow: Flow, name: str) -> None:
        self.product = flow.product
        self.flow = flow
        self.name = name
        self.subscriber = flow.subscriber(name)
        fields = {"name": "pulled", "subscriber": self.subscriber, "event_type": flow.event_type}
        flow.rest.post("subscriptions", fields | {"mode": "PULL", "header_filter_string": name})
        self.key = flow.rest.post(f"subscribers/{self.subscriber}/keys")["key"]

    def publish(self) -> str:
        return self.flow.publish(FILTER_STRING=self.name)

    def publish_batch(self, count: int) -> list[str]:
        """Publish so many messages in one transaction."""
        headers = {"FILTER_STRING": self.name}
        items = [
            {"event": self.flow.event_type, "headers": headers, "body": {}} for _ in range(count)
        ]
        return [result["id"] for result in self.flow.publisher.publish_batch(items)]

    def raw(self, verb: str, **query: Any) -> bytes:
        path = f"/api/v1/mailboxes/{self.subscriber}/{verb}?{urlencode(query)}"
        return (
            f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {self.key}\r\n\r\n"
        ).encode()

    def ask(self, verb: str, **query: Any) -> "WaitingClient":
        return WaitingClient(self, verb, **query)

    def next(self, **query: Any) -> list[Json]:
        with self.ask("next", **query) as asked:
            return asked.messages()


class WaitingClient:
    """A client on a connection of its own, which sends its request at once."""

    def __init__(self, box: ServedMailbox, verb: str = "next", **query: Any) -> None:
        self._raw = box.raw(verb, **query)
        self.connection = socket.create_connection(("127.0.0.1", box.product.port), timeout=SECONDS)
        self.again()

    def __enter__(self) -> "WaitingClient":
        return self

    def __exit__(self, *_: object) -> None:
        self.connection.close()

    def again(self) -> None:
        """Send the request once more, on the same connection."""
        self.asked_at = time.monotonic()
        self.connection.sendall(self._raw)

    def answer(self) -> tuple[HTTPResponse, bytes]:
        with HTTPResponse(self.connection, method="POST") as response:
            response.begin()
            body = response.read()
        assert "Inturn-Wait" not in response.headers
        return response, body

    def messages(self) -> list[Json]:
        response, body = self.answer()
        assert response.status in (200, 204), body
        found: list[Json] = orjson.loads(body)["messages"] if body else []
        return found

    def ids(self) -> list[str]:
        return [message["id"] for message in self.messages()]
