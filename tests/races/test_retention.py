"""Retention meets another change at the same rows: the first lock wins, and no wait is long."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial

import pytest
from django.db import connection, connections, transaction
from django.utils import timezone
from pytest_django import Settings

from config.retention_days import DEFAULT_DAYS
from delivery.maintenance import retention
from delivery.models import (
    DedupKey,
    Delivery,
    FailureNotice,
    IdempotencyKey,
    Message,
    RetentionRun,
    Status,
)
from delivery.publishing import failures
from delivery.publishing.drafts import Draft
from delivery.publishing.publish import publish
from delivery.support.resolve import NotResolvedError, mark_delivered
from delivery.support.resubmit import Edit, NotResubmittedError, resubmit_delivery, resubmit_edited
from subscriptions.models import DedupMode
from tests.races.transactions import meet, unfinished
from tests.support import factories
from tests.unit.delivery.maintenance.retaining import are_there, is_there, old, past, run_whole

pytestmark = pytest.mark.django_db(transaction=True)

EDIT = Edit(headers={}, content_type="application/json", body=b'{"n": 2}')


@pytest.fixture(autouse=True)
def _removes_all(settings: Settings) -> None:
    settings.ENVIRONMENT = replace(
        settings.ENVIRONMENT,
        retention_unarchived=True,
        retention_days=dict.fromkeys(DEFAULT_DAYS, 1),
    )


def advance() -> None:
    retention.advance_pass(timezone.now())


class TestResubmitting:
    def test_first_then_it_stays(self) -> None:
        row, other = old(Status.FAILED), old(Status.FAILED)
        with unfinished(partial(resubmit_delivery, row.pk, actor="ann")):
            # Does not wait for her transaction.
            run_whole()
        assert [is_there(message) for message in (row, other)] == [True, False]
        assert Delivery.objects.get(pk=row.pk).status == Status.PENDING
        run_whole()
        assert is_there(row)

    @pytest.mark.parametrize(
        ("act", "refusal"),
        [
            (lambda row: resubmit_delivery(row.pk, actor="ann"), NotResubmittedError),
            (lambda row: resubmit_edited(row, EDIT, actor="ann"), NotResubmittedError),
            (lambda row: mark_delivered(row.pk, actor="ann"), NotResolvedError),
        ],
    )
    def test_resubmitting_after_the_removal_finds_nothing(
        self, act: Callable[[Delivery], object], refusal: type[Exception]
    ) -> None:
        row = Delivery.objects.select_related("message__event_type").get(pk=old(Status.IN_DOUBT).pk)
        refused = meet(advance, partial(act, row))
        assert isinstance(refused, refusal)
        assert "retention has just removed it" in str(refused)
        assert not Message.objects.exists()

    def test_an_edited_copy_that_is_just_being_made_keeps_its_original(self) -> None:
        row = Delivery.objects.select_related("message__event_type").get(
            pk=old(Status.DELIVERED).pk
        )
        with unfinished(lambda: resubmit_edited(row, EDIT, actor="ann")):
            run_whole()
        assert is_there(row)
        run_whole()
        assert Message.objects.filter(edited_from=row.message).exists()

    def test_a_copy_of_a_copy_that_is_just_being_made_keeps_all_three(self) -> None:
        original = old()
        copy = factories.message(edited_from=original.message, published_at=past(9))
        row = Delivery.objects.select_related("message__event_type").get(pk=old(message=copy).pk)
        with unfinished(lambda: resubmit_edited(row, EDIT, actor="ann")):
            assert run_whole().messages == 0
        assert run_whole().messages == 0
        assert [is_there(message) for message in (original, row)] == [True, True]

    def test_a_lock_on_a_copy_keeps_only_its_original(self) -> None:
        original, other = (factories.message(published_at=past(9)) for _ in range(2))
        copy = factories.message(published_at=past(9), edited_from=original)
        held = Message.objects.select_for_update(no_key=True).filter(pk=copy.pk)
        with unfinished(lambda: list(held)):
            run_whole()
        assert are_there(original, copy, other) == [True, True, False]
        run_whole()
        assert are_there(original, copy) == [False, False]

    def test_of_many_resubmitted_during_removal_each_is_either_sent_or_removed(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(retention, "BATCH", 7)
        subscription = factories.subscription()
        rows = [old(Status.FAILED, subscription=subscription) for _ in range(150)]
        sent: list[int] = []

        def send_again() -> None:
            for row in reversed(rows):
                try:
                    resubmit_delivery(row.pk, actor="ann")
                except NotResubmittedError:
                    continue
                sent.append(row.pk)

        with ThreadPoolExecutor(2) as threads:
            people = [threads.submit(_alone, send_again) for _ in range(2)]
            run = run_whole()
            for person in people:
                person.result(60)
        assert sorted(sent) == sorted(Delivery.objects.values_list("pk", flat=True))
        assert set(Delivery.objects.values_list("status", flat=True)) <= {Status.PENDING}
        assert run.messages + len(sent) == len(rows)


class TestPublishers:
    def test_publish_while_a_batch_is_not_committed_yet(self) -> None:
        row = old()
        publisher = row.message.publisher or factories.publisher()
        with unfinished(advance):
            accepted = publish(
                publisher, [Draft(event_type=row.message.event_type, headers={}, body=b"{}")]
            )
        assert accepted[0].deliveries == 1
        assert not is_there(row)

    def test_keep_a_key_that_they_are_just_using_again(self) -> None:
        row = old()
        publisher = row.message.publisher or factories.publisher()
        draft = Draft(
            event_type=row.message.event_type, headers={}, body=b"{}", idempotency_key="k"
        )
        IdempotencyKey.objects.create(
            publisher=publisher, key="k", digest=b"x", message=row.message
        )
        IdempotencyKey.objects.update(created_at=past(2))
        with unfinished(lambda: publish(publisher, [draft])):
            run_whole()
            # The key still refers to the first answer.
            assert is_there(row)
        key = IdempotencyKey.objects.get()
        assert key.message_id != row.message_id
        run_whole()
        assert (is_there(row), IdempotencyKey.objects.count()) == (False, 1)

    def test_find_a_key_free_that_was_just_forgotten(self) -> None:
        subscription = factories.subscription(dedup_mode=DedupMode.KEY)
        publisher = factories.publisher()
        first = old(subscription=subscription)
        draft = Draft(
            event_type=subscription.event_type, headers={"idempotency-key": "k"}, body=b"{}"
        )
        publish(publisher, [draft])
        DedupKey.objects.update(delivery_id=first.pk, seen_at=past(400))
        assert meet(advance, lambda: publish(publisher, [draft])) is None
        newest = Delivery.objects.latest("id")
        assert newest.status == Status.PENDING
        assert DedupKey.objects.get().delivery_id == newest.pk

    def test_are_not_held_up_by_a_pass(self) -> None:
        """Many messages are published during a pass: a waiting publisher would publish a message.

        The figures are printed.
        """
        subscription = factories.subscription()
        event_type, publisher = subscription.event_type, factories.publisher()
        _fill(subscription.pk, 3_000)
        is_over = threading.Event()
        took: list[float] = []

        def keep_publishing() -> None:
            while not is_over.is_set():
                began = time.monotonic()
                publish(publisher, [Draft(event_type=event_type, headers={}, body=b"{}")])
                took.append(time.monotonic() - began)

        with ThreadPoolExecutor(1) as threads:
            publishing = threads.submit(_alone, keep_publishing)
            try:
                run = run_whole()
            finally:
                is_over.set()
            publishing.result(60)
        print(f"{len(took)} published beside it, the slowest in {max(took) * 1000:.0f} ms")
        assert run.messages == 3_000
        assert Message.objects.count() == len(took) > 10


def test_a_failure_being_reported_keeps_its_message() -> None:
    row = old(Status.REJECTED)
    FailureNotice.objects.create(delivery_id=row.pk, number=1)
    with unfinished(lambda: failures.publish_notices(limit=10)):
        run_whole()
        assert is_there(row)
    run_whole()
    assert not is_there(row)


def test_of_two_simultaneous_passes_one_starts() -> None:
    old()
    refused = meet(
        partial(retention.start_pass, actor="ann", now=timezone.now()),
        partial(retention.start_pass, actor="bob", now=timezone.now()),
    )
    assert isinstance(refused, retention.AlreadyRunningError)
    assert RetentionRun.objects.count() == 1


def _alone(act: Callable[[], object]) -> None:
    try:
        act()
    finally:
        connections.close_all()


def _fill(subscription_id: int, count: int) -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(
            """
            WITH messages AS (
                INSERT INTO delivery_message (
                    event_type_id, headers, content_type, body, published_at
                )
                SELECT event_type_id, '{}', '', '', now() - interval '9 days'
                FROM subscriptions_subscription, generate_series(1, %s)
                WHERE id = %s
                RETURNING id
            )
            INSERT INTO delivery_delivery (
                id, message_id, subscription_id, status, attempts, skipped, redelivery, reason,
                receive_count, settled_at
            )
            SELECT id << 20, id, %s, 'DELIVERED', 0, false, '', '', 0, now() - interval '9 days'
            FROM messages
            """,
            [count, subscription_id, subscription_id],
        )
