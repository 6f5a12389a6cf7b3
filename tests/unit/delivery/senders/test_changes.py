"""A sender reads every change of configuration, with any clocks and however late it commits."""

import asyncio
from collections.abc import Callable, Collection, Coroutine
from dataclasses import replace
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from django.db import connection
from django.utils import timezone

from delivery.database.connections import connection_parameters
from delivery.models import UrlHealth, UrlState
from delivery.senders.changes import Changed, Changes
from delivery.senders.claims import Claims
from delivery.senders.context import SenderContext
from delivery.senders.lanes.lane import SenderLane
from delivery.senders.parcel import Key
from delivery.senders.read_connection import ReadConnection
from subscriptions.models import CommonScript, Policy, SigningSecret, Subscription
from tests.support import factories
from tests.unit.delivery.senders.running import elsewhere, with_claims

pytestmark = pytest.mark.django_db(transaction=True)

Look = Callable[[], Coroutine[Any, Any, Changed]]
LONG_AGO = timezone.now() - timedelta(days=1)


def with_changes(scenario: Callable[[Look, ReadConnection], Coroutine[Any, Any, None]]) -> None:
    """Run the scenario with a sender's looks, when it has seen all earlier commits."""

    async def run() -> None:
        reader = ReadConnection(name="inturn reader test")
        changes = Changes(reader)
        try:
            assert not (await changes.read()).versions
            while (await changes.read()).versions:
                # An older transaction, perhaps of another test, is running.
                await asyncio.sleep(0.05)
            await scenario(changes.read, reader)
        finally:
            await reader.close()

    asyncio.run(run())


@pytest.fixture
def subscription(transactional_db: None) -> Subscription:
    return factories.subscription(policy=factories.policy("mine", breaks_circuit=True))


@pytest.fixture
def other(subscription: Subscription) -> Subscription:
    """A subscription that no change concerns."""
    return factories.subscription(endpoint="https://another.example/hook")


def _change_subscription(of: Subscription) -> None:
    Subscription.objects.filter(pk=of.pk).update(timeout_seconds=7, updated_at=LONG_AGO)


def _change_policy(of: Subscription) -> None:
    Policy.objects.filter(pk=of.policy_id).update(pause_seconds=2, updated_at=LONG_AGO)


def _add_secret(of: Subscription) -> None:
    SigningSecret.objects.create(subscription=of)


def _end_secret(of: Subscription) -> None:
    SigningSecret.objects.filter(subscription=of).update(expires_at=timezone.now())


def _break_url(of: Subscription) -> None:
    UrlHealth.objects.create(url=of.endpoint, state=UrlState.FROZEN, since=LONG_AGO)


@pytest.mark.parametrize(
    "change", [_change_subscription, _change_policy, _add_secret, _end_secret, _break_url]
)
def test_a_change_is_noticed_whatever_the_writers_clock(
    subscription: Subscription, other: Subscription, change: Callable[[Subscription], None]
) -> None:
    async def scenario(look: Look, reader: ReadConnection) -> None:
        (before,) = await reader.endpoints([subscription.pk])
        await elsewhere(change, subscription)
        changed = await look()
        (after,) = await reader.endpoints([subscription.pk])
        assert changed.versions == {subscription.pk: after.version}
        assert before.version != after.version

    with_changes(scenario)


def test_a_change_of_a_common_script_is_noticed_for_each_scripted_subscription(
    subscription: Subscription, other: Subscription
) -> None:
    def change(text: str) -> None:
        CommonScript.objects.update_or_create(name="dates", defaults={"text": text})

    def include() -> None:
        Subscription.objects.filter(pk=subscription.pk).update(script="$include$dates")

    async def scenario(look: Look, reader: ReadConnection) -> None:
        await elsewhere(change, "var first;")
        await elsewhere(include)
        await look()
        (before,) = await reader.endpoints([subscription.pk])
        await elsewhere(change, "var second;")
        changed = await look()
        (after,) = await reader.endpoints([subscription.pk])
        assert changed.versions == {subscription.pk: after.version}
        assert "var first;" in before.script
        assert "var second;" in after.script
        assert after.script_version == before.script_version + 1

    with_changes(scenario)


def test_a_change_that_commits_late_is_noticed(subscription: Subscription) -> None:
    async def scenario(look: Look, _: ReadConnection) -> None:
        with psycopg.connect(**connection_parameters()) as slow:
            slow.execute(
                "UPDATE subscriptions_subscription SET timeout_seconds = 7 WHERE id = %s",
                [subscription.pk],
            )
            other = await elsewhere(factories.subscription)
            assert set((await look()).versions) == {other.pk}
            assert subscription.pk not in (await look()).versions
            slow.commit()
        assert subscription.pk in (await look()).versions

    with_changes(scenario)


async def look_until_nothing_changed(look: Look, *, after: Changed) -> None:
    """A change may be seen again, unaltered, while any transaction of the server is older."""
    while True:
        changed = await look()
        assert changed.versions.items() <= after.versions.items()
        assert all(lane in after.lanes for lane in changed.lanes)
        if not changed.versions and not changed.lanes:
            return
        await asyncio.sleep(0.05)


@pytest.mark.parametrize("change", [_change_subscription, _end_secret])
def test_a_committed_change_is_noticed_once(
    subscription: Subscription, change: Callable[[Subscription], None]
) -> None:
    async def scenario(look: Look, _: ReadConnection) -> None:
        await elsewhere(change, subscription)
        changed = await look()
        assert set(changed.versions) == {subscription.pk}
        await look_until_nothing_changed(look, after=changed)

    with_changes(scenario)


def test_a_change_of_processing_is_noticed(subscription: Subscription) -> None:
    async def scenario(look: Look, _: ReadConnection) -> None:
        def change() -> None:
            subscription.subscriber.max_in_flight = 3
            subscription.subscriber.save()

        await elsewhere(change)
        changed = await look()
        (row,) = changed.lanes
        assert (row["id"], row["max_in_flight"]) == (subscription.subscriber.lane.pk, 3)
        await look_until_nothing_changed(look, after=changed)

    with_changes(scenario)


def test_after_a_backup_was_restored_everything_may_be_old(subscription: Subscription) -> None:
    reader = ReadConnection(name="inturn reader test")
    changes = Changes(reader)
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint + 1000000")
        (beyond,) = cursor.fetchone() or (0,)

    async def look() -> Changed:
        try:
            await changes.read()
            changes._horizon = beyond  # the transactions of the lost server
            return await changes.read()
        finally:
            await reader.close()

    assert asyncio.run(look()).is_all


def test_after_a_new_connection_everything_may_be_old(subscription: Subscription) -> None:
    """It may lead to a promoted standby, whose transactions have other numbers."""

    async def scenario(look: Look, reader: ReadConnection) -> None:
        assert not (await look()).is_all
        await reader.close()
        assert (await look()).is_all
        assert not (await look()).is_all

    with_changes(scenario)


def test_each_changed_lane_is_checked_once_however_many_endpoints_changed() -> None:
    looked_at: list[int] = []

    class WatchedChanges(SenderLane):
        @property
        def known_keys(self) -> Collection[Key]:
            looked_at.append(self.id)
            return ()

    async def scenario(_: Claims, context: SenderContext) -> None:
        (known,) = await context.refresh([(await elsewhere(factories.subscription)).pk])
        row = {
            "kind": "TOPIC",
            "state": "IDLE",
            "failures": 0,
            "wait_seconds": None,
            "processing": "SERIAL",
        }
        row |= {
            "max_in_flight": 1,
            "max_queued_to_send": 500,
            "refill_level": 100,
            "down": None,
            "catch_up_rate": None,
        }
        context.lanes = {id: WatchedChanges(row | {"id": id}) for id in range(100)}
        changed = [replace(known, subscription_id=1000 + id, lane_id=id) for id in range(50)]
        assert [lane.id for lane in context.lanes_of(changed)] == list(range(50))
        assert sorted(looked_at) == list(range(50, 100))
        context.lanes = {}

    with_claims(scenario)
