"""The ways to call an endpoint, with the same names and the same trust."""

import asyncio
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path

import uvloop

from delivery.calls.client_thread import ClientThread
from delivery.calls.http import call_as_sender, call_for_answer
from delivery.outcome import Outcome
from delivery.senders.http.client import HttpClient
from delivery.senders.http.request import make_request
from delivery.senders.parcel import Endpoint
from delivery.states import OutcomeClass
from subscriptions.values.endpoints import parse_endpoint
from subscriptions.values.resolver import Resolver
from tests.unit.delivery.calls.calling import trust
from tests.unit.delivery.senders.http.test_client import LOOPBACK, PARCEL, endpoint

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
NAMES = {
    "well.test": ["127.0.0.1"],
    "dual.test": ["127.0.0.66", "127.0.0.1"],
    "fourth.test": ["127.0.0.66", "127.0.0.67", "127.0.0.68", "127.0.0.1"],
    "dead.test": ["127.0.0.66", "127.0.0.67"],
    "xn--bcher-kva.test": ["127.0.0.1"],
    "private.test": ["10.1.2.3"],
    "gone.test": [],
}


class Ways:
    """Deliveries, test messages, SYNC calls, probes and alerts."""

    def __init__(self, resolver: Resolver, certificate: Path | None = None) -> None:
        self._resolver = resolver
        self._certificate = certificate

    def outcomes(self, to: Endpoint) -> dict[str, Outcome]:
        """Return the outcome of each way that has one."""
        request = make_request(PARCEL, to, now=datetime.now(UTC))
        # Each on a connection of its own: a receiver of a test may close one after its answer.
        with self.thread() as first, self.thread() as second:
            return {
                "PUSH": self._pushed(to),
                "test": call_as_sender(request, client=first).outcome,
                "SYNC": call_for_answer(request, client=second).outcome,
            }

    def reach(self, to: Endpoint) -> None:
        """Reach the endpoint in every way."""
        self.outcomes(to)
        with self.thread() as client:
            assert not client.wait_for(lambda client: client.probe(to.url, seconds=5), seconds=5)
            assert not client.wait_for(
                lambda client: client.post_json(to.url, b"{}", seconds=5), seconds=5
            )

    @contextmanager
    def thread(self) -> Iterator[ClientThread]:
        with closing(ClientThread(allowed_networks=LOOPBACK, resolver=self._resolver)) as client:
            if (certificate := self._certificate) is not None:
                client.wait_for(lambda client: trust(client, certificate), seconds=10)
            yield client

    def _pushed(self, to: Endpoint) -> Outcome:
        async def sending() -> Outcome:
            async with HttpClient(allowed_networks=LOOPBACK, resolver=self._resolver) as client:
                if self._certificate is not None:
                    await trust(client, self._certificate)
                return await client.send(PARCEL, to)

        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(sending())


def kind(outcome: Outcome) -> tuple[OutcomeClass, int | None, str]:
    return outcome.outcome, outcome.status_code, outcome.error


def saved(text: str, **fields: object) -> Endpoint:
    """Return an endpoint as it is saved."""
    parsed = parse_endpoint(text)
    given = {"method": parsed.method, "timeout_seconds": 10.0} | fields
    return endpoint(parsed.url, **given)


def same(outcomes: dict[str, Outcome]) -> tuple[OutcomeClass, int | None, str]:
    """Return the only kind of outcome of all ways."""
    kinds = {kind(outcome) for outcome in outcomes.values()}
    assert len(kinds) == 1, outcomes
    return kinds.pop()
