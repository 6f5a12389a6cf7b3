"""A receiver that moves is followed, although its old address still answers."""

import asyncio
from collections.abc import Iterator, Sequence

import pytest
import uvloop

from delivery.senders.http.client import HttpClient
from delivery.senders.http.connector import RESOLVED_SECONDS
from delivery.senders.http.stream import OLDEST_SECONDS, YOUNGEST_SECONDS
from delivery.states import OutcomeClass
from subscriptions.values.resolver import Resolver
from tests.support.receivers import Hold, Receiver
from tests.support.receivers.name_server import NameServer, name_server
from tests.unit.delivery.senders.http.test_client import LOOPBACK, PARCEL, endpoint
from tests.unit.delivery.senders.http.test_stream_late_bytes import SetClock

KNOWN: dict[str, Sequence[str]] = {}


@pytest.fixture
def names() -> Iterator[NameServer]:
    KNOWN["move.test"] = ["127.0.0.1"]
    with name_server(KNOWN) as names:
        yield names


def run(scenario: object) -> None:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(scenario)  # type: ignore[arg-type]


def test_a_move_counts_within_two_minutes() -> None:
    assert 60 <= YOUNGEST_SECONDS < OLDEST_SECONDS
    assert OLDEST_SECONDS + RESOLVED_SECONDS < 120


def test_a_busy_connection_ends_by_age_and_the_name_is_resolved_again(
    names: NameServer, receiver: Receiver
) -> None:
    hook = receiver.endpoint("hook")
    clock = SetClock()

    async def scenario() -> None:
        resolver = Resolver(servers=[names.address])
        async with HttpClient(allowed_networks=LOOPBACK, resolver=resolver, clock=clock) as client:
            to = endpoint(f"http://move.test:{receiver.port}/hook", timeout_seconds=20.0)
            for _ in range(int(YOUNGEST_SECONDS)):
                assert (await client.send(PARCEL, to)).outcome is OutcomeClass.SUCCESS
                clock.now += 1
            # Nobody listens there.
            KNOWN["move.test"] = ["127.0.0.3"]
            client.exchange.connector.clear_dns_cache()
            asked = len(names.asked)
            assert (await client.send(PARCEL, to)).outcome is OutcomeClass.SUCCESS
            clock.now += OLDEST_SECONDS - YOUNGEST_SECONDS
            ended = await client.send(PARCEL, to)
            assert ended.outcome is OutcomeClass.UNREACHABLE
            assert len(names.asked) > asked

    run(scenario())
    assert len(hook.received) == YOUNGEST_SECONDS + 1


def test_an_attempt_under_way_is_not_disturbed(receiver: Receiver) -> None:
    hook = receiver.endpoint("hook")
    holding = Hold()
    hook.next(holding)
    clock = SetClock()

    async def scenario() -> None:
        async with HttpClient(allowed_networks=LOOPBACK, clock=clock) as client:
            to = endpoint(hook.url, timeout_seconds=20.0)
            sending = asyncio.create_task(client.send(PARCEL, to))
            await asyncio.to_thread(hook.wait_for, lambda received: len(received) == 1)
            clock.now += 10 * OLDEST_SECONDS
            holding.release()
            assert (await sending).outcome is OutcomeClass.SUCCESS
            assert not client.exchange.connector._conns

    run(scenario())


def test_connections_made_together_do_not_end_together(receiver: Receiver) -> None:
    hook = receiver.endpoint("hook")
    holding = Hold()
    hook.always(holding)
    clock = SetClock()

    async def scenario() -> None:
        async with HttpClient(allowed_networks=LOOPBACK, clock=clock) as client:
            to = endpoint(hook.url, timeout_seconds=20.0)
            sending = [asyncio.create_task(client.send(PARCEL, to)) for _ in range(20)]
            await asyncio.to_thread(hook.wait_for, lambda received: len(received) == 20)
            clock.now += (YOUNGEST_SECONDS + OLDEST_SECONDS) / 2
            holding.release()
            await asyncio.gather(*sending)
            (kept,) = client.exchange.connector._conns.values()
            assert 0 < len(kept) < 20

    run(scenario())
