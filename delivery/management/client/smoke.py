"""A smoke test on a running Inturn: a message to a separate receiver, and through a mailbox.

Everything is created by REST, as an application would, and removed again: rows kept by REST,
because they are history, directly in the database.
"""

import secrets
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

from django.db import transaction

from delivery.management.client.mailbox import RemoteMailbox
from delivery.management.client.rest import RefusedError, RestClient
from delivery.models import Delivery, JournalEntry, Message
from delivery.models.message import parse_public_id
from delivery.senders.http.signing import signature, signing_key
from subscriptions.models import ApiKey, EventType, Publisher, Scope, Subscriber, Subscription
from subscriptions.models.api_key import new_key

BODY = b'{"smoke": true}'
POLL_SECONDS = 0.02
LOOPBACK_REFUSED = (
    "smoke receives on 127.0.0.1, where this Inturn may not send: stop Inturn, start it again with "
    "INTURN_ALLOWED_NETWORKS=127.0.0.0/8 in its environment, and repeat smoke."
)

Steps = list[tuple[str, float]]


class SmokeError(Exception):
    """The message did not arrive as expected; the text says where to look."""


class Inbox:
    """A receiver on a free loopback port which keeps the first request."""

    def __init__(self) -> None:
        self.arrived = threading.Event()
        self.headers: dict[str, str] = {}
        self.body = b""
        inbox = self

        class Taking(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                inbox.body, inbox.headers = body, {k.lower(): v for k, v in self.headers.items()}
                self.send_response(204)
                self.end_headers()
                inbox.arrived.set()

            # The library's name of the argument.
            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
                """Print nothing: the command prints the result."""

        self._server = HTTPServer(("127.0.0.1", 0), Taking)
        self.url = f"http://127.0.0.1:{self._server.server_port}/smoke"

    def __enter__(self) -> "Inbox":
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


@contextmanager
def temporary_key() -> Iterator[str]:
    """Create a manage key in the database, and delete it afterwards."""
    key = new_key()
    row = ApiKey(scope=Scope.MANAGE, name="smoke")
    row.set_key(key)
    row.save()
    try:
        yield key
    finally:
        row.delete()


def try_one(url: str, *, key: str, seconds: float) -> Steps:
    """Send a message through, and return the steps with their durations.

    Raise SmokeError or ClientError.
    """
    name = f"smoke-{secrets.token_hex(6)}"
    steps: Steps = []
    try:
        with Inbox() as inbox, RestClient(url, key=key) as client:
            start = time.perf_counter()
            publisher_key, secret = _configure(client, name, endpoint=inbox.url)
            steps.append(("configured", time.perf_counter() - start))
            with RestClient(url, key=publisher_key) as publisher:
                steps += _publish(publisher, inbox, name, seconds=seconds)
                _verify(inbox, secret)
            steps.append(("fetched and acknowledged", _fetch(client, url, name)))
    finally:
        remove_traces(name)
    return steps


def _configure(client: RestClient, name: str, *, endpoint: str) -> tuple[str, str]:
    """Create everything needed for a message; return the publisher's key and the signing secret."""
    client.post("event-types", {"name": name})
    client.post("publishers", {"name": name, "event_types": [name]})
    key = client.post(f"publishers/{name}/keys", {})["key"]
    client.post("subscribers", {"name": name})
    names = {"subscriber": name, "event_type": name}
    secret = _subscribe(
        client, {**names, "name": "smoke", "endpoint": endpoint, "policy": "teamforge"}
    )
    client.post("subscriptions", {**names, "name": "smoke-mailbox", "mode": "PULL"})
    return key, secret


def _subscribe(client: RestClient, fields: dict[str, str]) -> str:
    """Return the signing secret; raise SmokeError if this Inturn may not send to the receiver."""
    try:
        secret: str = client.post("subscriptions", fields)["secret"]
    except RefusedError as refused:
        if any(error["field"] == "endpoint" for error in refused.problem.get("errors", [])):
            raise SmokeError(LOOPBACK_REFUSED) from refused
        raise
    return secret


def _publish(publisher: RestClient, inbox: Inbox, name: str, *, seconds: float) -> Steps:
    start = time.perf_counter()
    accepted = publisher.call("POST", f"events/{name}/messages", body=BODY)
    steps = [("accepted", time.perf_counter() - start)]
    if not inbox.arrived.wait(seconds):
        raise SmokeError(
            f"{accepted['id']} was accepted and did not arrive within {seconds:g} s: "
            "is a cluster running (`manage.py qcluster`), and what does its log say?"
        )
    steps.append(("received, since it was published", time.perf_counter() - start))
    while (status := _pushed(publisher.get(f"messages/{accepted['id']}"))["status"]) != "DELIVERED":
        if time.perf_counter() - start > seconds:
            raise SmokeError(f"{accepted['id']} was received, but is {status} after {seconds:g} s.")
        time.sleep(POLL_SECONDS)
    steps.append(("DELIVERED, since it was published", time.perf_counter() - start))
    return steps


def _pushed(message: Mapping[str, Any]) -> Mapping[str, Any]:
    return next(delivery for delivery in message["deliveries"] if delivery["mode"] == "PUSH")


def _fetch(client: RestClient, url: str, name: str) -> float:
    """Fetch the message from the mailbox and acknowledge it; return the seconds for both."""
    key = client.post(f"subscribers/{name}/keys", {})["key"]
    with RestClient(url, key=key) as subscriber:
        mailbox = RemoteMailbox(subscriber, name)
        start = time.perf_counter()
        fetched = mailbox.fetch(most=10)
        if [message.body for message in fetched] != [BODY]:
            raise SmokeError(
                f"The mailbox handed out {len(fetched)} messages, not the one that was published."
            )
        if late := mailbox.acknowledge([fetched[0].receipt]):
            raise SmokeError(f"{fetched[0].id} was fetched and could not be acknowledged: {late}")
        return time.perf_counter() - start


def _verify(inbox: Inbox, secret: str) -> None:
    sent = inbox.headers
    expected = signature(
        [signing_key(secret)],
        webhook_id=sent["webhook-id"],
        timestamp=int(sent["webhook-timestamp"]),
        body=inbox.body,
    )
    if inbox.body != BODY or sent["webhook-signature"] != expected:
        raise SmokeError(
            "The received message differs from the published one, or its signature is wrong."
        )
    if parse_public_id(sent["webhook-id"]) is None:
        raise SmokeError(f"{sent['webhook-id']!r} is no message's id.")


@transaction.atomic
def remove_traces(name: str) -> None:
    messages = Message.objects.filter(event_type__name=name)
    JournalEntry.objects.filter(message_id__in=messages.values("pk")).delete()
    Delivery.objects.filter(message__event_type__name=name).delete()
    messages.delete()
    Subscription.objects.filter(subscriber__name=name).delete()
    Subscriber.objects.filter(name=name).delete()
    Publisher.objects.filter(name=name).delete()
    EventType.objects.filter(name=name).delete()
