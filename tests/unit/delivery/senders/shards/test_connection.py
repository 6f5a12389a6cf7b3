"""A sender that connects again gets its shards although the server keeps its previous session."""

import asyncio
from collections.abc import Iterator

import psycopg
import pytest
from django.db import connection

from delivery.models.shard import SHARDS
from delivery.senders.shards.connection import SenderConnection
from tests.system.faults.firewall import Firewall

pytestmark = pytest.mark.django_db(transaction=True)

ALL = list(range(SHARDS))


@pytest.fixture
def firewall(monkeypatch: pytest.MonkeyPatch) -> Iterator[Firewall]:
    """New connections go through the firewall."""
    settings = connection.settings_dict
    with Firewall(settings["HOST"], int(settings["PORT"])) as firewall:
        monkeypatch.setitem(settings, "PORT", str(firewall.port))
        yield firewall


async def lock_all(session: SenderConnection) -> int | None:
    """Take a slot and all shards, and return the slot."""
    assert await session.take_slot()
    assert await session.lock(ALL) == ALL
    return session.slot


def test_the_previous_session_is_ended(firewall: Firewall) -> None:
    async def scenario() -> None:
        session = SenderConnection()
        slot = await lock_all(session)
        await session.members(busy_percent=0, sharing=1)
        assert firewall.reset_all()
        with pytest.raises(psycopg.OperationalError):
            await session.fetch("heartbeat", {})
        assert await lock_all(session) == slot
        await session.close()

    asyncio.run(scenario())
