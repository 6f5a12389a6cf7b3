"""Calls as the tests make them."""

import socket
import ssl
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path

from delivery.calls.client_thread import ClientThread, client_thread
from delivery.calls.http import Called, call_for_answer
from delivery.senders.http.client import HttpClient
from delivery.senders.http.request import make_request
from delivery.states import OutcomeClass
from subscriptions.values.addresses import Network
from tests.unit.delivery.senders.http.test_client import LOOPBACK, PARCEL, endpoint


def called(
    url: str,
    *,
    allowed: Sequence[Network] = LOOPBACK,
    client: ClientThread | None = None,
    **fields: object,
) -> Called:
    request = make_request(PARCEL, endpoint(url, **fields), now=datetime.now(UTC))
    return call_for_answer(request, client=client or client_thread(allowed_networks=allowed))


def outcome(ended: Called) -> OutcomeClass:
    return ended.outcome.outcome


@contextmanager
def trusting(certificate: Path) -> Iterator[ClientThread]:
    """Yield a client that trusts only this certificate."""
    with closing(ClientThread(allowed_networks=LOOPBACK)) as client:
        client.wait_for(lambda client: trust(client, certificate), seconds=10)
        yield client


async def trust(client: HttpClient, certificate: Path) -> None:
    """Make a client trust only this certificate."""
    client.exchange.connector._ssl = ssl.create_default_context(cafile=certificate)


def read_request(connection: socket.socket) -> None:
    """Read the whole request: closing with unread data resets the connection."""
    request = b""
    while not request.endswith(PARCEL.body) and (part := connection.recv(65_536)):
        request += part
