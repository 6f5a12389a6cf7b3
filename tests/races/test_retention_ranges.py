"""Dropping a range of messages meets another change: either happens, as a whole."""

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import psycopg
import pytest
from django.db import connection, transaction
from django.utils import timezone
from pytest_django import Settings

from config.retention_days import DEFAULT_DAYS
from delivery.database import queries
from delivery.database.connections import connection_parameters
from delivery.history.postgres.window import open_snapshot
from delivery.maintenance import ranges, retention
from delivery.models import Delivery, Message, MessageRange, RetentionRun, Status
from delivery.publishing.drafts import Draft
from delivery.publishing.publish import publish
from delivery.support.replays.deliver import advance_replay as replay
from delivery.support.resolve import NotResolvedError, mark_delivered
from delivery.support.resubmit import Edit, NotResubmittedError, resubmit_delivery, resubmit_edited
from tests.races.transactions import meet, unfinished
from tests.support import factories
from tests.system.operation.installation import eventually
from tests.unit.delivery.maintenance.ranged import go_on_from, ids_put_back, is_there, range_of
from tests.unit.delivery.maintenance.retaining import old, past, run_whole
from tests.unit.delivery.support.replays.ready_replay import running

pytestmark = pytest.mark.django_db(transaction=True)

EDIT = Edit(headers={}, content_type="application/json", body=b'{"n": 2}')


@pytest.fixture(autouse=True)
def _removes_all(settings: Settings) -> None:
    settings.ENVIRONMENT = replace(
        settings.ENVIRONMENT,
        retention_unarchived=True,
        retention_days=dict.fromkeys(DEFAULT_DAYS, 1),
    )


@pytest.fixture
def whole() -> Iterator[MessageRange]:
    """Yield a removable range with two deliveries, one IN_DOUBT, behind a staying range."""
    with ids_put_back():
        go_on_from(MessageRange.objects.earliest("first_id").first_id + 1)
        factories.message()
        with range_of() as made:
            for status in (Status.DELIVERED, Status.IN_DOUBT):
                old(status, days=1.5)
        yield made
        with connection.cursor() as cursor:
            cursor.execute("TRUNCATE delivery_message, delivery_delivery, delivery_loggedattempt")
        if is_there(made):
            queries.execute_statement("drop_range", {"first": made.first_id})


def messages_of(whole: MessageRange) -> list[int]:
    messages = Message.objects.filter(pk__gte=whole.first_id, pk__lt=whole.until_id)
    return list(messages.values_list("pk", flat=True))


def in_doubt() -> Delivery:
    return Delivery.objects.select_related("message__event_type").get(status=Status.IN_DOUBT)


def is_session(pid: int) -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1 FROM pg_stat_activity WHERE pid = %s", [pid])
        return cursor.fetchone() is not None


def advance() -> None:
    retention.advance_pass(timezone.now())


def pass_to(of: MessageRange) -> None:
    """Begin a pass whose next range is this range."""
    retention.start_pass(actor="ann", now=timezone.now())
    RetentionRun.objects.update(position=of.first_id - 1)


Act = Callable[[Delivery], object]
ACTS: list[tuple[Act, type[Exception]]] = [
    (lambda row: resubmit_delivery(row.pk, actor="ann"), NotResubmittedError),
    (lambda row: resubmit_edited(row, EDIT, actor="ann"), NotResubmittedError),
    (lambda row: mark_delivered(row.pk, actor="ann"), NotResolvedError),
]


class TestLockingADelivery:
    @pytest.mark.parametrize("act", [act for act, _ in ACTS])
    def test_locking_a_delivery_keeps_its_range(self, whole: MessageRange, act: Act) -> None:
        row = in_doubt()
        pass_to(whole)
        with unfinished(partial(act, row)):
            advance()
            assert RetentionRun.objects.get().messages == 0
        run_whole()
        assert Delivery.objects.filter(pk=row.pk).exists()
        assert is_there(whole)

    @pytest.mark.parametrize(("act", "refusal"), ACTS)
    def test_arriving_during_the_drop_finds_nothing(
        self, whole: MessageRange, act: Act, refusal: type[Exception]
    ) -> None:
        row = in_doubt()
        pass_to(whole)
        refused = meet(advance, partial(act, row))
        assert isinstance(refused, refusal)
        assert not is_there(whole)
        assert RetentionRun.objects.get().messages == 2
        assert messages_of(whole) == []

    @pytest.mark.parametrize("act", [act for act, _ in ACTS])
    def test_arriving_between_the_check_and_the_lock_keeps_the_range(
        self, whole: MessageRange, act: Act, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        row = in_doubt()
        pass_to(whole)
        hold = ranges.lock_range

        def meanwhile(of: MessageRange) -> None:
            with unfinished(partial(act, row)):
                pass
            hold(of)

        monkeypatch.setattr(ranges, "lock_range", meanwhile)
        advance()
        assert Delivery.objects.filter(pk=row.pk).exists()
        assert is_there(whole)


def test_a_replay_that_makes_a_delivery_keeps_the_range(whole: MessageRange) -> None:
    row = in_doubt()
    pass_to(whole)
    made = running(row.subscription, [row.message_id])
    with unfinished(lambda: replay(timezone.now())):
        advance()
    assert Delivery.objects.filter(replay=made, status=Status.PENDING).count() == 1
    run_whole()
    assert is_there(whole)
    assert Message.objects.filter(pk=row.message_id).exists()


def test_a_message_with_an_old_id_keeps_its_range_or_is_stored_elsewhere(
    whole: MessageRange,
) -> None:
    late, later = whole.until_id - 2, whole.until_id - 1
    pass_to(whole)
    event_type = factories.event_type()
    with unfinished(lambda: factories.message(pk=late, event_type=event_type)):
        advance()
        assert is_there(whole)
    Message.objects.filter(pk=late).update(published_at=past(5))
    RetentionRun.objects.all().delete()
    pass_to(whole)
    assert meet(advance, lambda: factories.message(pk=later, event_type=event_type)) is None
    assert not is_there(whole)
    assert messages_of(whole) == [later]


class TestReaders:
    def test_leave_it_for_later(self, whole: MessageRange) -> None:
        with psycopg.connect(**connection_parameters()) as reader:
            reader.execute("SELECT count(*) FROM delivery_delivery")
            assert run_whole().messages == 0
            assert Delivery.objects.count() == 2
        assert run_whole().messages == 2
        assert not is_there(whole)

    def test_blocking_the_drop_for_a_day_leads_to_removal_row_by_row(
        self, whole: MessageRange
    ) -> None:
        Delivery.objects.update(settled_at=past(2.5))
        Message.objects.filter(pk__in=messages_of(whole)).update(published_at=past(2.5))
        with psycopg.connect(**connection_parameters()) as reader:
            reader.execute("SELECT count(*) FROM delivery_delivery")
            assert run_whole().messages == 2
        assert is_there(whole)

    def test_with_an_old_snapshot_still_see_its_rows(self, whole: MessageRange) -> None:
        conninfo = psycopg.conninfo.make_conninfo(**connection_parameters())
        with open_snapshot(conninfo) as seen:
            assert run_whole().messages == 0
            assert seen.connection.execute("SELECT count(*) FROM delivery_settled").fetchone() == (
                2,
            )
            reader = seen.connection.info.backend_pid
        # The server ends a session, and the session's locks, after the client has closed it.
        eventually(lambda: not is_session(reader), "the session has ended")
        assert run_whole().messages == 2

    def test_begin_a_snapshot_when_it_is_gone(self, whole: MessageRange) -> None:
        conninfo = psycopg.conninfo.make_conninfo(**connection_parameters())
        counts: list[object] = []

        def read() -> None:
            with open_snapshot(conninfo) as seen:
                counts.append(
                    seen.connection.execute("SELECT count(*) FROM delivery_settled").fetchone()
                )

        pass_to(whole)
        assert meet(advance, read) is None
        assert counts == [(0,)]


def test_no_row_changes_between_the_second_check_and_the_drop(
    whole: MessageRange, monkeypatch: pytest.MonkeyPatch
) -> None:
    pass_to(whole)
    drop, row = ranges.drop_range, in_doubt()

    def meanwhile(of: MessageRange) -> None:
        with psycopg.connect(**connection_parameters()) as other:
            other.execute("SET lock_timeout = '50ms'")
            with pytest.raises(psycopg.errors.LockNotAvailable):
                other.execute("SELECT FROM delivery_settled WHERE id = %s FOR UPDATE", [row.pk])
        drop(of)

    monkeypatch.setattr(ranges, "drop_range", meanwhile)
    advance()
    assert not is_there(whole)


def test_publishers_do_not_wait_while_a_range_is_checked(
    whole: MessageRange, monkeypatch: pytest.MonkeyPatch
) -> None:
    subscription, publisher = factories.subscription(), factories.publisher()
    pass_to(whole)
    drop, stored = ranges.drop_range, threading.Event()

    def publishing() -> None:
        publish(publisher, [Draft(event_type=subscription.event_type, headers={}, body=b"{}")])
        stored.set()

    def meanwhile(of: MessageRange) -> None:
        with unfinished(publishing):
            assert stored.is_set()
        drop(of)

    monkeypatch.setattr(ranges, "drop_range", meanwhile)
    advance()
    assert not is_there(whole)
    assert Message.objects.latest("id").published_at > past(0.1)


def test_a_drop_ended_before_its_commit_changes_nothing(whole: MessageRange) -> None:
    pass_to(whole)
    with transaction.atomic():
        advance()
        assert not is_there(whole)
        transaction.set_rollback(True)
    assert is_there(whole)
    assert Delivery.objects.count() == 2
    assert RetentionRun.objects.get().messages == 0
    advance()
    assert not is_there(whole)
    assert RetentionRun.objects.get().messages == 2


def test_a_message_restored_to_an_emptied_range_keeps_it(
    whole: MessageRange, monkeypatch: pytest.MonkeyPatch
) -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"TRUNCATE delivery_message_{whole.first_id}, delivery_settled")
    hold, event_type, restored = ranges.lock_range, factories.event_type(), whole.first_id + 1

    def meanwhile(of: MessageRange) -> None:
        with unfinished(lambda: factories.message(pk=restored, event_type=event_type)):
            pass
        hold(of)

    monkeypatch.setattr(ranges, "lock_range", meanwhile)
    assert ranges.drop_emptied(until_id=whole.until_id) == 0
    assert is_there(whole)
    assert messages_of(whole) == [restored]
