"""The guard of the client: built-in receivers are reached on the loopback, and nothing else."""

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from delivery.calls.client_thread import client_thread
from delivery.calls.http import call_for_answer
from delivery.outcome import Outcome
from delivery.senders.http.client import HttpClient
from delivery.senders.http.request import make_request
from delivery.states import OutcomeClass
from subscriptions.values.built_in_receivers import BuiltInReceiverUrls, built_in_receivers
from subscriptions.values.resolver import Resolver
from tests.support.receivers import Answer, Receiver
from tests.support.receivers.endpoint import ReceiverEndpoint
from tests.support.receivers.name_server import NameServer, name_server
from tests.unit.delivery.senders.http.test_client import PARCEL, endpoint

TOKEN = "t" * 32


@pytest.fixture
def own(receiver: Receiver) -> BuiltInReceiverUrls:
    """The web server of the tests is the receiver."""
    return built_in_receivers(f"http://127.0.0.1:{receiver.port}")


@pytest.fixture
def built_in(receiver: Receiver) -> ReceiverEndpoint:
    return receiver.endpoint(f"receiver/{TOKEN}")


@pytest.fixture
def names() -> Iterator[NameServer]:
    with name_server({"rebound.test": ["127.0.0.1"]}) as names:
        yield names


def sent(own: BuiltInReceiverUrls, *urls: str, names: NameServer | None = None) -> list[Outcome]:
    """Send to the URLs one after another, as one sender does; no network is allowed."""

    async def sending() -> list[Outcome]:
        resolver = Resolver(servers=[names.address]) if names else Resolver()
        async with HttpClient(
            allowed_networks=(), built_in_receivers=own, resolver=resolver
        ) as client:
            return [await client.send(PARCEL, endpoint(url)) for url in urls]

    return asyncio.run(sending())


def called(own: BuiltInReceiverUrls, *urls: str) -> list[Outcome]:
    client = client_thread(allowed_networks=(), built_in_receivers=own)
    return [
        call_for_answer(
            make_request(PARCEL, endpoint(url), now=datetime.now(UTC)), client=client
        ).outcome
        for url in urls
    ]


def test_both_reach_a_built_in_receiver(
    own: BuiltInReceiverUrls, built_in: ReceiverEndpoint
) -> None:
    assert sent(own, built_in.url)[0].outcome is OutcomeClass.SUCCESS
    assert called(own, built_in.url)[0].outcome is OutcomeClass.SUCCESS
    assert [request.body for request in built_in.received] == [PARCEL.body, PARCEL.body]


def test_its_kept_connection_leads_to_no_other_page(
    own: BuiltInReceiverUrls, built_in: ReceiverEndpoint, receiver: Receiver
) -> None:
    page = receiver.endpoint("admin")
    for outcomes in (sent(own, built_in.url, page.url), called(own, built_in.url, page.url)):
        assert [each.outcome for each in outcomes] == [
            OutcomeClass.SUCCESS,
            OutcomeClass.REFUSED_ADDRESS,
        ]
    assert page.received == []


def test_its_redirect_is_not_followed(
    own: BuiltInReceiverUrls, built_in: ReceiverEndpoint, receiver: Receiver
) -> None:
    page = receiver.endpoint("admin")
    built_in.always(Answer(307, headers={"Location": page.url}))
    assert sent(own, built_in.url)[0].outcome is OutcomeClass.REDIRECT
    assert called(own, built_in.url)[0].outcome is OutcomeClass.REDIRECT
    assert page.received == []


def test_another_name_of_the_same_server_is_refused(
    own: BuiltInReceiverUrls, built_in: ReceiverEndpoint, receiver: Receiver, names: NameServer
) -> None:
    named = f"http://rebound.test:{receiver.port}/receiver/{TOKEN}"
    assert sent(own, named, names=names)[0].outcome is OutcomeClass.REFUSED_ADDRESS
    local = f"http://localhost:{receiver.port}/receiver/{TOKEN}"
    assert sent(own, local)[0].outcome is OutcomeClass.REFUSED_ADDRESS
    assert called(own, local)[0].outcome is OutcomeClass.REFUSED_ADDRESS
    assert built_in.received == []


def test_a_probe_of_it_is_made_and_of_another_page_is_not(
    own: BuiltInReceiverUrls, built_in: ReceiverEndpoint, receiver: Receiver
) -> None:
    page = receiver.endpoint("healthz")

    async def probing() -> list[str]:
        async with HttpClient(allowed_networks=(), built_in_receivers=own) as client:
            return [await client.probe(url, seconds=5) for url in (built_in.url, page.url)]

    well, refused = asyncio.run(probing())
    assert well == ""
    assert "is refused" in refused
    assert page.received == []
