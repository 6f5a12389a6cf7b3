"""Calls as the tests make them."""

import socket
from collections.abc import Sequence
from datetime import UTC, datetime

from delivery.calls.http import Called, call_endpoint
from delivery.senders.http.request import make_request
from delivery.states import OutcomeClass
from subscriptions.values.addresses import Network
from tests.unit.delivery.senders.test_http import LOOPBACK, PARCEL, endpoint


def called(url: str, *, allowed: Sequence[Network] = LOOPBACK, **fields: object) -> Called:
    request = make_request(PARCEL, endpoint(url, **fields), now=datetime.now(UTC))
    return call_endpoint(request, allowed_networks=allowed)


def outcome(ended: Called) -> OutcomeClass:
    return ended.outcome.outcome


def read_request(connection: socket.socket) -> None:
    """Read the whole request: closing with unread data resets the connection."""
    request = b""
    while not request.endswith(PARCEL.body) and (part := connection.recv(65_536)):
        request += part
