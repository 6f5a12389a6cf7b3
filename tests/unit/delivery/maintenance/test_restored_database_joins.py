"""Joins in a restored database: messages that may have been joined since are not joined again."""

from datetime import timedelta

import pytest
from django.utils import timezone

from delivery.lifecycle.transitions import reopen_deliveries
from delivery.maintenance.restored_database import mark_restored
from delivery.models import Delivery, Lane, Status
from delivery.publishing.drafts import Draft
from delivery.publishing.publish import publish
from subscriptions.models import JoinMode, Subscription
from tests.support import factories
from tests.support.sequences import kept_sequences  # noqa: F401 - a fixture

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("kept_sequences")]


def halves(mode: JoinMode) -> list[Subscription]:
    owner = factories.subscriber()
    return [
        factories.subscription(
            subscriber=owner, join_mode=mode, join_name="order", position=position
        )
        for position in range(2)
    ]


def send(to: Subscription) -> Delivery:
    draft = Draft(event_type=to.event_type, headers={"activation": "A"}, body=b"{}")
    (accepted,) = publish(factories.publisher(), [draft])
    return Delivery.objects.get(message=accepted.message_id, subscription=to)


def restore(*, nothing_sent_since: bool = False) -> None:
    now = timezone.now()
    mark_restored(made_at=now - timedelta(hours=1), nothing_sent_since=nothing_sent_since, now=now)


def status(of: Delivery) -> str:
    return Delivery.objects.get(pk=of.pk).status


def test_a_part_that_waited_is_in_doubt_and_completes_no_join() -> None:
    first, second = halves(JoinMode.ALL)
    waited = send(first)
    restore()
    repeated = send(second)
    assert (status(waited), status(repeated)) == (Status.IN_DOUBT, Status.PENDING)
    assert not Delivery.objects.filter(lane__isnull=False).exists()


def test_a_part_in_doubt_that_a_person_resubmits_is_sent_by_itself() -> None:
    first, second = halves(JoinMode.ALL)
    waited = send(first)
    restore()
    reopen_deliveries([waited.pk], reason="by ann")
    assert Delivery.objects.get(pk=waited.pk).lane == Lane.objects.get(subscriber=first.subscriber)
    send(second)
    assert Delivery.objects.filter(lane__isnull=False).count() == 1


def test_new_messages_with_the_activation_id_are_joined() -> None:
    first, second = halves(JoinMode.ALL)
    send(first)
    restore()
    parts = [send(first), send(second)]
    assert [status(part) for part in parts] == [Status.REDUNDANT] * 2


def test_the_first_of_only_one_remains_the_first() -> None:
    first, second = halves(JoinMode.ONLY_ONE)
    sent = send(first)
    restore()
    other = send(second)
    assert (status(sent), status(other)) == (Status.IN_DOUBT, Status.REDUNDANT)


def test_if_nothing_was_sent_since_a_part_still_waits_for_the_other() -> None:
    first, second = halves(JoinMode.ALL)
    waited = send(first)
    restore(nothing_sent_since=True)
    send(second)
    assert status(waited) == Status.REDUNDANT
