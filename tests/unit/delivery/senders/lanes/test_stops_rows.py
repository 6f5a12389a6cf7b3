"""The health of endpoints: rows written on change by their lane, and read when the lane begins."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from ipaddress import ip_network
from typing import Any

import pytest
from django.utils import timezone

from delivery.database.queries import named_rows
from delivery.database.statements import statement
from delivery.models import Delivery, EndpointHealth, Lane, LaneState, OutcomeClass
from delivery.models.shard import shard_of
from delivery.senders.claims import Claims
from delivery.senders.commits.commit_statements import commit_statements
from delivery.senders.commits.group_commit import GroupCommit
from delivery.senders.context import SenderContext
from delivery.senders.entries import EndpointChange, Entry, LaneChange
from delivery.support import unblock
from subscriptions.models import Processing, Subscription
from tests.support import factories
from tests.support.receivers import OK, Close, Hold, Receiver
from tests.support.surroundings import NETWORKS
from tests.unit.delivery.senders.entries import run_of, settlement
from tests.unit.delivery.senders.running import (
    elsewhere,
    serve_lanes,
    with_claims,
    with_group_commit,
)

pytestmark = pytest.mark.django_db(transaction=True)

SECONDS = 20
Row = tuple[int, int, int | None, int]


def rows() -> list[Row]:
    """Return subscription, lane, delivery and failures of each endpoint that is DOWN."""
    found = EndpointHealth.objects.order_by("pk")
    return list(found.values_list("pk", "lane_id", "delivery_id", "failures"))


def commit(*groups: tuple[int, Sequence[Entry]]) -> None:
    """Commit entries of these lanes one after another."""

    async def scenario(commits: GroupCommit) -> None:
        await serve_lanes(commits, list({lane_id for lane_id, _ in groups}))
        for lane_id, entries in groups:
            await commits.commit(lane_id, *entries)

    with_group_commit(scenario)


def queue_lane(number: int = 0) -> int:
    return Lane.objects.get(kind="QUEUE", number=number).pk


def down(subscription: Subscription, lane_id: int, **fields: Any) -> EndpointChange:
    given: dict[str, Any] = {
        "delivery_id": 7,
        "reason": "timed out",
        "failures": 1,
        "wait_seconds": 60.0,
    } | fields
    return EndpointChange(lane_id=lane_id, subscription_id=subscription.pk, **given)


def up(subscription: Subscription, lane_id: int) -> EndpointChange:
    return EndpointChange(lane_id=lane_id, subscription_id=subscription.pk)


def blocked(by: Delivery, **fields: Any) -> LaneChange:
    given: dict[str, Any] = {
        "state": LaneState.BLOCKED,
        "reason": "503",
        "failures": 1,
        "wait_seconds": 60.0,
    } | fields
    return LaneChange(lane_id=by.lane_id or 0, delivery_id=by.pk, **given)


class TestRows:
    def test_an_endpoint_is_down_from_its_first_failure_until_a_success(self) -> None:
        lane, second_subscription, other = (
            queue_lane(),
            factories.subscription(),
            factories.subscription(),
        )
        commit((lane, [down(second_subscription, lane), down(other, lane)]))
        since = EndpointHealth.objects.get(pk=second_subscription.pk).since
        commit((lane, [down(second_subscription, lane, delivery_id=8, failures=2)]))
        assert rows() == [(second_subscription.pk, lane, 8, 2), (other.pk, lane, 7, 1)]
        found = EndpointHealth.objects.get(pk=second_subscription.pk)
        assert (found.since, found.reason) == (since, "timed out")
        assert found.next_try_at is not None
        assert found.next_try_at - timezone.now() == pytest.approx(
            timedelta(seconds=60), abs=timedelta(seconds=20)
        )
        commit((lane, [up(second_subscription, lane)]))
        assert rows() == [(other.pk, lane, 7, 1)]

    def test_a_row_is_of_the_lane_that_wrote_it_last_and_a_success_anywhere_ends_it(self) -> None:
        first, second, single = queue_lane(0), queue_lane(1), factories.subscription()
        commit((first, [down(single, first)]), (second, [down(single, second)]))
        assert rows() == [(single.pk, second, 7, 1)]
        commit((first, [up(single, first)]))
        assert rows() == []

    def test_of_two_lanes_in_one_commit_the_last_one_counts(self) -> None:
        first, second, single = queue_lane(0), queue_lane(1), factories.subscription()
        commit((first, [down(single, first), down(single, second)]))
        assert rows() == [(single.pk, second, 7, 1)]

    def test_where_order_is_kept_that_of_the_delivery_that_stops_the_lane_is_down(self) -> None:
        owner = factories.subscriber()
        first_subscription, other = (
            factories.delivery(subscription=factories.subscription(subscriber=owner))
            for _ in range(2)
        )
        lane_id = owner.lane.pk
        commit((lane_id, [blocked(first_subscription)]))
        assert rows() == [(first_subscription.subscription_id, lane_id, first_subscription.pk, 1)]
        since = EndpointHealth.objects.get().since
        commit(
            (
                lane_id,
                [
                    blocked(
                        first_subscription, state=LaneState.SUSPENDED, failures=2, wait_seconds=None
                    )
                ],
            )
        )
        found = EndpointHealth.objects.get()
        assert (found.since, found.failures, found.next_try_at) == (since, 2, None)
        # Another delivery, and a lane that flows, show nothing of the first endpoint.
        commit((lane_id, [blocked(other)]))
        commit((lane_id, [LaneChange(lane_id=lane_id, state=LaneState.IDLE, ends_run=False)]))
        assert [row[0] for row in rows()] == [
            first_subscription.subscription_id,
            other.subscription_id,
        ]
        commit((lane_id, [up(other.subscription, lane_id)]))
        assert [row[0] for row in rows()] == [first_subscription.subscription_id]

    def test_a_row_is_deleted_with_its_subscription(self) -> None:
        lane, single = queue_lane(), factories.subscription()
        commit((lane, [down(single, lane)]))
        late = down(single, lane)
        single.delete()
        assert rows() == []
        commit((lane, [late]))
        assert rows() == []

    def test_healthy_endpoints_write_no_row(self) -> None:
        row = factories.delivery()
        entries: list[Entry] = [
            settlement(row),
            run_of(row),
            settlement(row, outcome=OutcomeClass.SERVER_ERROR),
        ]
        written = {text for text, _ in commit_statements(entries)}
        assert written.isdisjoint({statement("endpoints_up"), statement("endpoints_down")})


class TestDue:
    """A pause that a person has ended is found even if the notification was lost."""

    def due(self, lane: Lane, *, delivery: int, failures: int) -> list[dict[str, Any]]:
        asked = {"lane": [lane.pk], "delivery": [delivery], "failures": [failures]}
        return named_rows("due_lanes", asked)

    def test_a_due_lane_is_found_and_so_are_its_endpoints(self) -> None:
        head = factories.delivery()
        commit((head.lane_id or 0, [blocked(head, failures=3)]))
        assert head.lane is not None
        assert self.due(head.lane, delivery=head.pk, failures=3) == []
        unblock.retry_head(head.lane, actor="ann")
        assert self.due(head.lane, delivery=head.pk, failures=3) == [{"id": head.lane_id}]
        assert EndpointHealth.objects.filter(next_try_at__lte=timezone.now()).exists()

    def test_a_row_of_an_earlier_pause_ends_no_later_one(self) -> None:
        head = factories.delivery()
        commit((head.lane_id or 0, [blocked(head, failures=3, wait_seconds=0.0)]))
        assert head.lane is not None
        assert self.due(head.lane, delivery=head.pk, failures=4) == []
        assert self.due(head.lane, delivery=head.pk + 1, failures=3) == []


class TestBeginning:
    """A lane begins with the state of its last sender."""

    def test_a_restarted_sender_keeps_the_pauses_of_several_endpoints(
        self, receiver: Receiver
    ) -> None:
        owner = factories.subscriber(processing=Processing.CONCURRENT, max_in_flight=8)
        policy = factories.policy(pause_seconds=600, pause_max_seconds=600)
        made = {
            name: factories.subscription(
                name, subscriber=owner, endpoint=receiver.endpoint(name).url, policy=policy
            )
            for name in ("a", "b", "up")
        }
        for subscription in made.values():
            factories.delivery(subscription=subscription)
        for name in ("a", "b"):
            receiver.endpoint(name).always(Close())
        lane: Lane = owner.lane

        async def until_down(claims: Claims, _: SenderContext) -> None:
            await claims.serve([lane.pk])
            await eventually(lambda: len(rows()) == 2)

        serving(until_down)
        lane.refresh_from_db()
        assert lane.state == LaneState.BLOCKED
        tried = {name: len(receiver.endpoint(name).received) for name in made}
        for name, subscription in made.items():
            receiver.endpoint(name).always(OK)
            factories.delivery(subscription=subscription)

        async def again(claims: Claims, context: SenderContext) -> None:
            await claims.serve([lane.pk])
            served = context.lanes[lane.pk]
            assert set(served.keys.blocked()) == {made["a"].pk, made["b"].pk}
            await elsewhere(receiver.endpoint("up").wait_for_count, tried["up"] + 1)
            assert [len(receiver.endpoint(name).received) for name in ("a", "b")] == [
                tried["a"],
                tried["b"],
            ]
            # A person ends the pauses: each endpoint is tried, takes one, and is up again.
            served.nudge()
            await eventually(lambda: rows() == [])

        serving(again)
        lane.refresh_from_db()
        assert lane.state == LaneState.IDLE

    def test_a_queue_lane_has_no_work_because_an_endpoint_is_down(self) -> None:
        lane, of = queue_lane(), factories.subscription()
        commit((lane, [down(of, lane)]))
        assert named_rows("lanes_with_work", {"shard": [shard_of(lane)]}) == []

    def test_queue_lanes_start_with_the_rows_of_all_of_them(self) -> None:
        first, second, single = queue_lane(0), queue_lane(1), factories.subscription()
        commit((first, [down(single, first)]))
        (row,) = named_rows("read_lanes", {"lane": [second]})
        assert [found["subscription_id"] for found in row["down"]] == [single.pk]
        (row,) = named_rows("read_lanes", {"lane": [factories.subscriber().lane.pk]})
        assert row["down"] is None


def test_a_success_deletes_an_endpoints_row(receiver: Receiver) -> None:
    endpoint, hold = receiver.endpoint("a"), Hold()
    endpoint.next(Close(), hold)
    policy = factories.policy(pause_seconds=1, pause_max_seconds=1)
    single = factories.subscription(
        event_type=factories.event_type(kind="QUEUE"), endpoint=endpoint.url, policy=policy
    )
    lane = Lane.objects.get(pk=queue_lane())
    factories.delivery(subscription=single, lane=lane, queue_group=0)

    async def scenario(claims: Claims, _: SenderContext) -> None:
        await claims.serve([lane.pk])
        await eventually(lambda: [row[:2] for row in rows()] == [(single.pk, lane.pk)])
        # It is tried again, and is down until it has taken that message.
        await elsewhere(endpoint.wait_for_count, 2)
        assert await elsewhere(rows) != []
        hold.release()
        await eventually(lambda: rows() == [])

    serving(scenario)


def serving(scenario: Callable[[Claims, SenderContext], Awaitable[None]]) -> None:
    with_claims(scenario, networks=[ip_network(NETWORKS)])  # type: ignore[list-item]


async def eventually(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(SECONDS):
        while not await elsewhere(is_so):
            await asyncio.sleep(0.02)
