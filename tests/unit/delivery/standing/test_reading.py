"""How subscriptions, subscribers, mailboxes and queue groups stand, in situations of every kind."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from delivery.models import (
    Delivery,
    EndpointHealth,
    IncidentKind,
    IncidentRule,
    Lane,
    LaneKind,
    UrlHealth,
    UrlState,
)
from delivery.standing.reading import (
    standing_of_groups,
    standing_of_mailboxes,
    standing_of_subscribers,
    standing_of_subscriptions,
)
from delivery.standing.vocabulary import Cause, Holder, Standing, State
from delivery.states import Status
from delivery.support.toggle import Release, deactivate_owner, hold_owner
from subscriptions.models import (
    Installation,
    Kind,
    Mode,
    Processing,
    Subscription,
    SubscriptionStatus,
)
from tests.support import factories
from tests.unit.delivery.console.blocking import block, suspend

pytestmark = pytest.mark.django_db


def of(subscription: Subscription) -> Standing:
    return standing_of_subscriptions([subscription.pk])[subscription.pk]


def of_owner(subscription: Subscription) -> Standing:
    owner = subscription.subscriber_id
    return standing_of_subscribers([owner])[owner]


def old_delivery(subscription: Subscription, *, age: timedelta, **fields: Any) -> Delivery:
    at = timezone.now() - age
    message = factories.message(event_type=subscription.event_type, published_at=at)
    return factories.delivery(subscription=subscription, message=message, **fields)


def worker(group: Subscription | None = None) -> Subscription:
    event_type = group.event_type if group else factories.event_type(kind=Kind.QUEUE)
    return factories.subscription(event_type=event_type)


def queued(subscription: Subscription) -> Delivery:
    lane = Lane.objects.get(kind=LaneKind.QUEUE, number=0)
    return factories.delivery(subscription=subscription, lane=lane, queue_group=0)


class TestQuietAndMoving:
    def test_nothing_waits(self) -> None:
        row = factories.subscription()
        factories.delivery(Status.DELIVERED, subscription=row)
        assert of(row) == Standing(subscription_id=row.pk, parts=1)

    def test_something_waits(self) -> None:
        row = factories.subscription()
        waiting = old_delivery(row, age=timedelta(minutes=9))
        factories.delivery(subscription=row)
        assert (of(row).state, of(row).oldest_at) == (
            State.MOVING,
            waiting.message.published_at,
        )

    def test_a_retry_waits_however_old_it_is(self) -> None:
        row = factories.subscription()
        lane = Lane.objects.get(kind=LaneKind.RETRY)
        old_delivery(
            row,
            age=timedelta(days=1),
            lane=lane,
            attempts=3,
            next_attempt_at=timezone.now() + timedelta(hours=1),
        )
        assert of(row).state == State.MOVING


class TestWaiting:
    def test_in_the_lane_the_retry_lane_a_queue_and_the_mailbox(self) -> None:
        row = factories.subscription()
        retry, queue = (Lane.objects.get(kind=kind, number=0) for kind in ("RETRY", "QUEUE"))
        later = timezone.now() + timedelta(hours=1)
        factories.delivery(subscription=row)
        factories.delivery(subscription=row, skipped=True, attempts=1)
        factories.delivery(subscription=row, lane=retry, attempts=1, next_attempt_at=later)
        groups = factories.event_type(kind=Kind.QUEUE)
        grouped = factories.subscription(subscriber=row.subscriber, event_type=groups)
        factories.delivery(subscription=grouped, lane=queue, queue_group=0)
        box = factories.subscription(subscriber=row.subscriber, mode=Mode.PULL)
        factories.delivery(subscription=box)
        factories.delivery(subscription=box, next_attempt_at=later)
        factories.delivery(Status.IN_FLIGHT, subscription=box)
        factories.delivery(Status.DELIVERED, subscription=box)
        assert [str(of(part).waiting) for part in (row, grouped, box)] == ["3", "1", "3"]
        assert str(of_owner(row).waiting) == "7"
        (mailbox,) = standing_of_mailboxes([row.subscriber_id]).values()
        assert str(mailbox.waiting) == "3"

    def test_of_a_subscriber_up_to_the_limit(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("delivery.standing.waiting_counts.WAITING_LIMIT", 3)
        rows = [factories.subscription(subscriber=factories.subscriber())]
        rows.append(factories.subscription(subscriber=rows[0].subscriber))
        for row in rows * 2:
            factories.delivery(subscription=row)
        assert (str(of(rows[0]).waiting), str(of_owner(rows[0]).waiting)) == ("2", "3+")

    def test_held_deliveries_count_where_nothing_may_be_sent(self) -> None:
        row = factories.subscription(subscriber=factories.subscriber())
        held = factories.subscription(subscriber=row.subscriber, status="HELD")
        factories.delivery(subscription=row)
        for _ in range(2):
            factories.delivery(subscription=held)
        assert str(of_owner(row).waiting) == "1"
        # A release of the subscriber would not send those that are held by themselves.
        hold_owner(row.subscriber, actor="ann")
        assert str(of_owner(row).waiting) == "1"
        assert [str(of(part).waiting) for part in (row, held)] == ["1", "2"]


class TestSlow:
    def test_the_oldest_is_older_than_the_rule(self) -> None:
        row = factories.subscription()
        old_delivery(row, age=timedelta(minutes=11))
        assert (of(row).state, of(row).why) == (State.SLOW, "the oldest waits too long")
        IncidentRule.objects.filter(pk=IncidentKind.OLDEST).update(bound=3600)
        assert of(row).state == State.MOVING

    def test_what_was_passed_over_does_not_count(self) -> None:
        row = factories.subscription()
        old_delivery(row, age=timedelta(minutes=11), skipped=True, attempts=1)
        assert of(row).state == State.MOVING

    def test_a_lane_that_catches_up_is_not_slow(self) -> None:
        row = factories.subscription()
        waiting = old_delivery(row, age=timedelta(days=1))
        Lane.objects.filter(subscriber=row.subscriber).update(
            catch_up_rate=1, catch_up_to=waiting.pk
        )
        assert of(row).state == State.MOVING

    def test_messages_that_nobody_fetches(self) -> None:
        row = factories.subscription(mode=Mode.PULL)
        old_delivery(row, age=timedelta(hours=2))
        assert standing_of_mailboxes([row.subscriber_id])[row.subscriber_id].state == State.SLOW


class TestStopped:
    def test_a_blocked_lane_stops_all_that_it_has_in_order(self) -> None:
        head = factories.delivery()
        sibling = factories.subscription(subscriber=head.subscription.subscriber)
        box = factories.subscription(subscriber=head.subscription.subscriber, mode=Mode.PULL)
        lane = block(head)
        for row in (head.subscription, sibling):
            found = of(row)
            assert (found.state, found.cause, found.delivery_id) == (
                State.STOPPED,
                Cause.BLOCKED,
                head.pk,
            )
            assert (found.since, found.next_try_at) == (lane.since, lane.next_try_at)
            assert found.why == "unreachable: connection refused"
        assert of(box).state == State.QUIET
        assert (of_owner(sibling).state, of_owner(sibling).parts, of_owner(sibling).down) == (
            State.STOPPED,
            3,
            2,
        )

    def test_a_blocked_lane_whose_head_is_settled_is_about_to_continue(self) -> None:
        head = factories.delivery()
        block(head)
        factories.settle(head, Status.CANCELLED)
        # Its endpoint was not reached since.
        assert of(head.subscription).state == State.DOWN

    def test_a_suspended_lane_waits_for_a_person(self) -> None:
        top = factories.delivery(Status.REJECTED, lane=None)
        top.lane = top.subscription.subscriber.lane
        suspend(top)
        found = of(top.subscription)
        assert (found.state, found.cause, found.next_try_at) == (
            State.STOPPED,
            Cause.SUSPENDED,
            None,
        )

    @pytest.mark.parametrize("state", [UrlState.DISABLED, UrlState.FROZEN])
    def test_its_url_is_stopped(self, state: UrlState) -> None:
        row = factories.subscription(policy=factories.policy("workfront-48h"))
        probe = timezone.now() + timedelta(hours=1) if state == UrlState.DISABLED else None
        UrlHealth.objects.create(
            url=row.endpoint, state=state, failures_in_row=7, next_probe_at=probe
        )
        found = of(row)
        assert (found.state, found.cause, found.next_try_at) == (
            State.STOPPED,
            Cause(state),
            probe,
        )
        assert found.why == "7 attempts at its URL failed in a row"


class TestDown:
    def test_one_endpoint_of_a_concurrent_subscriber(self) -> None:
        owner = factories.subscriber(processing=Processing.CONCURRENT)
        down, up = (factories.subscription(subscriber=owner) for _ in range(2))
        block(factories.delivery(subscription=down))
        factories.delivery(subscription=up)
        assert (of(down).state, of(up).state) == (State.DOWN, State.MOVING)
        assert (of_owner(up).state, of_owner(up).parts, of_owner(up).down) == (State.DOWN, 2, 1)

    def test_it_ends_by_a_success_and_not_by_emptiness(self) -> None:
        row = factories.subscription()
        tried = factories.delivery(Status.FAILED, subscription=row)
        factories.endpoint_down(tried, lane_id=row.subscriber.lane.pk)
        assert (of(row).state, of(row).oldest_at) == (State.DOWN, None)
        EndpointHealth.objects.all().delete()
        assert of(row).state == State.QUIET


class TestByAPerson:
    @pytest.mark.parametrize(
        ("decide", "state"), [(hold_owner, State.HELD), (deactivate_owner, State.INACTIVE)]
    )
    def test_the_decision_comes_before_what_failed(
        self, decide: Callable[..., bool], state: State
    ) -> None:
        head = factories.delivery()
        block(head)
        decide(head.subscription, actor="ann")
        found = of(head.subscription)
        assert (found.state, found.holder) == (state, Holder.SUBSCRIPTION)
        assert found.since is not None
        assert found.reason == ""

    def test_a_subscriber_holds_its_subscriptions(self) -> None:
        row = factories.subscription(subscriber=factories.subscriber())
        until = timezone.now() + timedelta(hours=1)
        hold_owner(row.subscriber, actor="ann", release=Release(until=until))
        for found in (of(row), of_owner(row)):
            assert (found.state, found.holder, found.next_try_at) == (
                State.HELD,
                Holder.SUBSCRIBER,
                until,
            )
            assert found.since is not None

    def test_all_sending_is_held(self) -> None:
        top = factories.delivery()
        suspend(top)
        Installation.objects.create(pk=1, sending="HELD")
        assert (of(top.subscription).state, of(top.subscription).holder) == (
            State.HELD,
            Holder.INSTALLATION,
        )

    def test_shadow_sends_nothing(self) -> None:
        found = of(factories.subscription(status=SubscriptionStatus.SHADOW))
        assert (found.state, found.cause) == (State.INACTIVE, Cause.SHADOW)

    def test_a_backlog_is_cancelled_first(self) -> None:
        row = factories.subscription(cancellation_id=1)
        assert (of(row).state, of(row).cause) == (State.HELD, Cause.CANCELLING)

    def test_a_subscriber_is_held_only_with_all_its_subscriptions(self) -> None:
        held = factories.subscription(status=SubscriptionStatus.HELD)
        old_delivery(held, age=timedelta(days=1))
        assert of_owner(held).state == State.HELD
        factories.subscription(subscriber=held.subscriber)
        assert (of_owner(held).state, of_owner(held).oldest_at) == (State.QUIET, None)

    def test_a_subscriber_without_subscriptions(self) -> None:
        quiet, inactive = factories.subscriber(), factories.subscriber(status="INACTIVE")
        found = standing_of_subscribers([quiet.pk, inactive.pk])
        assert [found[row.pk].state for row in (quiet, inactive)] == [State.QUIET, State.INACTIVE]


class TestMailboxStanding:
    def test_full_of_fetched_messages(self) -> None:
        row = factories.subscription(mode=Mode.PULL)
        for _ in range(3):
            factories.delivery(Status.IN_FLIGHT, subscription=row)
        (found,) = standing_of_mailboxes([row.subscriber_id]).values()
        assert found.state == State.MOVING
        assert found.oldest_at is not None

    def test_returned_for_later(self) -> None:
        row = factories.subscription(mode=Mode.PULL)
        later = timezone.now() + timedelta(minutes=5)
        old_delivery(row, age=timedelta(hours=1), next_attempt_at=later)
        assert of(row).state == State.MOVING

    def test_a_subscriber_that_is_pushed_to_has_none(self) -> None:
        assert standing_of_mailboxes([factories.subscription().subscriber_id]) == {}


class TestQueueGroup:
    def group(self, of_worker: Subscription) -> Standing:
        (found,) = standing_of_groups(of_worker.event_type_id).values()
        return found

    def test_one_worker_is_down_and_nothing_waits(self) -> None:
        first = worker()
        second = worker(first)
        factories.endpoint_down(queued(first))
        Delivery.objects.all().delete()
        assert (of(first).state, of(second).state) == (State.DOWN, State.QUIET)
        assert (self.group(first).state, self.group(first).down) == (State.DOWN, 1)

    def test_all_workers_are_down(self) -> None:
        first = worker()
        rows = [first, worker(first)]
        for row in rows:
            factories.endpoint_down(queued(row))
        assert [of(row).state for row in rows] == [State.DOWN] * 2
        assert self.group(first).state == State.STOPPED

    @pytest.mark.parametrize(("workers", "state"), [(2, State.DOWN), (1, State.STOPPED)])
    def test_the_url_of_a_worker_is_frozen(self, workers: int, state: State) -> None:
        event_type = factories.event_type(kind=Kind.QUEUE)
        policy = factories.policy("workfront-48h")
        first = factories.subscription(event_type=event_type, policy=policy)
        for _ in range(workers - 1):
            worker(first)
        UrlHealth.objects.create(url=first.endpoint, state=UrlState.FROZEN, failures_in_row=7)
        assert of(first).state == State.STOPPED
        assert self.group(first).state == state

    def test_a_message_for_several_workers_waits_once(self) -> None:
        first = worker()
        for row in (first, worker(first)):
            queued(row)
        assert str(self.group(first).waiting) == "1"

    def test_groups_of_an_event_type_stand_apart(self) -> None:
        down = worker()
        other = factories.subscription(event_type=down.event_type, header_filter_string="b")
        factories.endpoint_down(queued(down))
        queued(other)
        found = standing_of_groups(down.event_type_id)
        assert {key[0]: standing.state for key, standing in found.items()} == {
            "": State.STOPPED,
            "b": State.MOVING,
        }


@pytest.mark.parametrize(
    "read", [standing_of_subscriptions, standing_of_subscribers, standing_of_mailboxes]
)
def test_no_row_needs_no_standing(read: Callable[[list[int]], object]) -> None:
    assert read([]) == {}


def test_the_cost_does_not_grow_with_the_rows(
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    owners = [factories.subscription().subscriber_id for _ in range(5)]
    with django_assert_num_queries(2):
        standing_of_subscribers(owners)


def test_a_page_of_ten_thousand_subscriptions_probes_its_own_rows_only() -> None:
    subscription = factories.subscription()
    with connection.cursor() as cursor:
        cursor.execute(
            "EXPLAIN (FORMAT JSON) SELECT * FROM unnest(%s::bigint[]) AS wanted (id) "
            "CROSS JOIN LATERAL (SELECT * FROM delivery_subscriptionstanding "
            "WHERE subscription_id = wanted.id LIMIT 1) AS standing",
            [[subscription.pk]],
        )
        ((plan,),) = cursor.fetchall()
    assert "Hash Join" not in str(plan)
