"""An attempt begins when its first byte is written, and only if the lane is still owned."""

import asyncio
import ipaddress

import pytest

from delivery.senders.http.client import HttpClient
from delivery.senders.http.exchange import NotBegunError
from tests.support.receivers import Receiver
from tests.unit.delivery.senders.http.test_client import PARCEL, endpoint

LOOPBACK = [ipaddress.ip_network("127.0.0.0/8")]


def test_a_request_that_may_not_begin_is_not_sent(receiver: Receiver) -> None:
    hook = receiver.endpoint("hook")

    async def scenario() -> None:
        async with HttpClient(allowed_networks=LOOPBACK) as client:
            with pytest.raises(NotBegunError):
                await client.send(PARCEL, endpoint(hook.url), may_begin=lambda: False)
            assert hook.received == []
            outcome = await client.send(PARCEL, endpoint(hook.url))
            assert outcome.status_code == 200

    asyncio.run(scenario())
    assert len(hook.received) == 1
