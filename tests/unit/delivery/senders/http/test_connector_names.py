"""Host names whose servers do not answer delay no other messages."""

import asyncio
import contextlib
from collections.abc import Iterator, Sequence

import pytest
import uvloop

from delivery.outcome import Outcome
from delivery.senders.http.client import HttpClient
from delivery.senders.http.exchange import CONNECT_SECONDS
from delivery.states import OutcomeClass
from subscriptions.values.resolver import RESOLVE_SECONDS, Resolver
from tests.support.receivers import Receiver
from tests.support.receivers.name_server import NameServer, name_server
from tests.unit.delivery.senders.http.test_client import LOOPBACK, PARCEL, endpoint

DEAD = [f"dead-{number}.test" for number in range(100)]


@pytest.fixture
def names() -> Iterator[NameServer]:
    known: dict[str, Sequence[str]] = {
        "well.test": ["127.0.0.1"],
        "two.test": ["127.0.0.2", "127.0.0.1"],
        "mixed.test": ["10.1.2.3", "127.0.0.1"],
        "private.test": ["10.1.2.3"],
        "gone.test": [],
    }
    with name_server(known) as names:
        yield names


def run(scenario: object) -> None:
    # As in a sender.
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(scenario)  # type: ignore[arg-type]


def client(names: NameServer) -> HttpClient:
    return HttpClient(allowed_networks=LOOPBACK, resolver=Resolver(servers=[names.address]))


async def send(sender: HttpClient, url: str) -> Outcome:
    return await sender.send(PARCEL, endpoint(url, timeout_seconds=30.0))


def test_a_hundred_dead_names_delay_no_message_to_another_name(
    names: NameServer, receiver: Receiver
) -> None:
    hook = receiver.endpoint("hook")

    async def scenario() -> None:
        async with client(names) as sender:
            dead = [asyncio.create_task(send(sender, f"http://{name}/")) for name in DEAD]
            await asyncio.to_thread(names.wait_for, lambda asked: set(DEAD) <= set(asked))
            ended = await send(sender, f"http://well.test:{receiver.port}/hook")
            assert ended.outcome is OutcomeClass.SUCCESS
            # It did not wait for any of them.
            assert not any(task.done() for task in dead)
            for task in dead:
                ended = await task
                assert ended.outcome is OutcomeClass.UNREACHABLE
                assert ended.error.startswith("the name servers gave no answer")

    run(scenario())
    assert len(hook.received) == 1


def test_resolving_is_part_of_the_time_to_connect() -> None:
    assert RESOLVE_SECONDS < CONNECT_SECONDS


def test_a_failed_name_is_not_resolved_again_at_once(names: NameServer) -> None:
    async def scenario() -> None:
        async with client(names) as sender:
            for _ in range(3):
                ended = await send(sender, "http://gone.test:81/")
                assert (ended.outcome, ended.error) == (
                    OutcomeClass.UNREACHABLE,
                    "the host's name has no address (gone.test:81)",
                )

    run(scenario())
    # Once for IPv4 and once for IPv6.
    assert names.asked == ["gone.test"] * 2


def test_a_cancelled_look_up_does_not_disturb_other_waiters(
    names: NameServer, receiver: Receiver
) -> None:
    async def scenario() -> None:
        resolver = Resolver(servers=[names.address])
        impatient = asyncio.create_task(resolver.find("well.test"))
        patient = asyncio.create_task(resolver.find("well.test"))
        await asyncio.sleep(0)
        impatient.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await impatient
        assert await patient == ["127.0.0.1"]

    run(scenario())


@pytest.mark.parametrize("name", ["two.test", "mixed.test"])
def test_one_allowed_address_of_several_is_enough(
    names: NameServer, receiver: Receiver, name: str
) -> None:
    receiver.endpoint("hook")

    async def scenario() -> None:
        async with client(names) as sender:
            ended = await send(sender, f"http://{name}:{receiver.port}/hook")
            assert ended.outcome is OutcomeClass.SUCCESS

    run(scenario())


def test_a_name_of_forbidden_addresses_only_is_refused(names: NameServer) -> None:
    async def scenario() -> None:
        async with client(names) as sender:
            ended = await send(sender, "http://private.test/")
            assert ended.outcome is OutcomeClass.REFUSED_ADDRESS
            assert "10.1.2.3" in ended.error

    run(scenario())
