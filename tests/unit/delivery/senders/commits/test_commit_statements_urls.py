"""The effect of attempts on a URL's health: each transition between states, with moved times."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from delivery.models import Delivery, JournalEntry, JournalKind, OutcomeClass, UrlHealth, UrlState
from delivery.outcome import class_of
from delivery.senders.commits.group_commit import GroupCommit
from delivery.senders.entries import Settlement
from subscriptions.models import Policy, Subscription
from tests.support import factories
from tests.unit.delivery.senders.entries import settlement
from tests.unit.delivery.senders.running import serve_lanes, with_group_commit

pytestmark = pytest.mark.django_db(transaction=True)

URL = "https://receiver.example.com/hook"
OK, FAILED = OutcomeClass.SUCCESS, OutcomeClass.SERVER_ERROR


def breaking(**fields: Any) -> Subscription:
    """Create a subscription to the URL whose policy has a breaker with low thresholds."""
    thresholds: dict[str, Any] = {
        "breaker_failures": 5,
        "breaker_attempts": 10,
        "freeze_failures": 7,
        "freeze_failures_at_once": 50,
    }
    policy = factories.policy(breaks_circuit=True, **(thresholds | fields))
    return factories.subscription(endpoint=f"PATCH:{URL}", policy=policy)


def tried(of: Subscription, *outcomes: OutcomeClass) -> UrlHealth:
    """Commit these outcomes together, each for its own delivery; return the URL's health."""
    rows = [factories.delivery(subscription=of) for _ in outcomes]

    async def scenario(commits: GroupCommit) -> None:
        lane_id = rows[0].lane_id or 0
        await serve_lanes(commits, [lane_id])
        await commits.commit(lane_id, *entries(rows, outcomes))

    with_group_commit(scenario)
    return UrlHealth.objects.get()


def entries(rows: Sequence[Delivery], outcomes: Sequence[OutcomeClass]) -> list[Settlement]:
    return [
        settlement(row, outcome=outcome, counted_subscription_id=row.subscription_id)
        for row, outcome in zip(rows, outcomes, strict=True)
    ]


def journal() -> list[str]:
    kinds = (JournalKind.DISABLED, JournalKind.ENABLED, JournalKind.FROZEN)
    return list(
        JournalEntry.objects.filter(kind__in=kinds).order_by("id").values_list("kind", flat=True)
    )


def test_the_url_is_counted_without_the_method_before_it() -> None:
    health = tried(breaking(), FAILED, OK, FAILED)
    assert health.url == URL
    assert (health.state, health.attempts, health.failures, health.failures_in_row) == (
        UrlState.ENABLED,
        3,
        2,
        1,
    )


def test_failures_in_a_row_are_counted_across_commits_until_a_success() -> None:
    of = breaking()
    assert tried(of, FAILED, FAILED).failures_in_row == 2
    assert tried(of, FAILED).failures_in_row == 3
    assert tried(of, FAILED, OK).failures_in_row == 0
    assert journal() == []


def test_enough_failures_in_a_row_disable_it_and_a_probe_is_due_later() -> None:
    health = tried(breaking(breaker_probe_seconds=600), *[FAILED] * 5)
    assert health.state == UrlState.DISABLED
    assert health.next_probe_at is not None
    assert timedelta(seconds=590) < health.next_probe_at - timezone.now() <= timedelta(seconds=600)
    assert journal() == [JournalKind.DISABLED]


def test_a_share_of_failures_disables_it_only_after_the_grace_of_the_first_attempts() -> None:
    of = breaking(breaker_failures=1000, freeze_failures=1000, freeze_failures_at_once=1000)
    assert tried(of, OK, *[FAILED] * 9).state == UrlState.ENABLED
    assert tried(of, FAILED).state == UrlState.DISABLED


def test_a_share_that_is_just_reached_is_not_exceeded() -> None:
    of = breaking(breaker_failures=1000, freeze_failures=1000, freeze_failures_at_once=1000)
    assert tried(of, *([FAILED] * 7 + [OK] * 3) * 2).state == UrlState.ENABLED


def test_a_failed_probe_postpones_the_next() -> None:
    of = breaking()
    tried(of, *[FAILED] * 5)
    UrlHealth.objects.update(next_probe_at=timezone.now())
    health = tried(of, FAILED)
    assert health.state == UrlState.DISABLED
    assert health.next_probe_at is not None
    assert health.next_probe_at > timezone.now()
    assert journal() == [JournalKind.DISABLED]


def test_a_successful_probe_enables_the_url_and_restarts_the_count() -> None:
    of = breaking()
    tried(of, *[FAILED] * 5)
    health = tried(of, OK)
    assert (health.state, health.attempts, health.failures, health.failures_in_row) == (
        UrlState.ENABLED,
        0,
        0,
        0,
    )
    assert health.next_probe_at is None
    assert journal() == [JournalKind.DISABLED, JournalKind.ENABLED]


def test_days_without_a_success_freeze_a_failing_url() -> None:
    of = breaking(freeze_hours=72)
    tried(of, *[FAILED] * 7)
    UrlHealth.objects.update(last_success_at=timezone.now() - timedelta(hours=71))
    assert tried(of, FAILED).state == UrlState.DISABLED
    UrlHealth.objects.update(last_success_at=timezone.now() - timedelta(hours=73))
    assert tried(of, FAILED).state == UrlState.FROZEN
    assert journal() == [JournalKind.DISABLED, JournalKind.FROZEN]


def test_a_url_that_never_succeeded_has_no_last_success() -> None:
    of = breaking()
    assert tried(of, *[FAILED] * 4).first_success_at is None
    first = tried(of, OK, FAILED).first_success_at
    assert first is not None
    assert tried(of, OK, FAILED).first_success_at == first


def test_the_first_attempt_may_be_the_first_success() -> None:
    assert tried(breaking(), OK, FAILED).first_success_at is not None


def test_days_without_a_success_alone_do_not_freeze() -> None:
    of = breaking(freeze_hours=72)
    tried(of, FAILED)
    UrlHealth.objects.update(last_success_at=timezone.now() - timedelta(days=30))
    assert tried(of, FAILED).state == UrlState.ENABLED


def test_very_many_failures_freeze_it_at_once() -> None:
    health = tried(breaking(freeze_failures_at_once=8), *[FAILED] * 8)
    assert (health.state, health.next_probe_at) == (UrlState.FROZEN, None)


def test_only_a_person_releases_a_frozen_url() -> None:
    of = breaking(freeze_failures_at_once=8)
    tried(of, *[FAILED] * 8)
    assert tried(of, OK).state == UrlState.FROZEN


def test_two_subscriptions_with_the_url_share_its_health() -> None:
    tried(breaking(), FAILED, FAILED)
    assert tried(breaking(), FAILED, FAILED, FAILED).state == UrlState.DISABLED


def test_lost_and_unsendable_attempts_do_not_count_for_the_url() -> None:
    of = breaking()
    tried(of, FAILED)
    assert tried(of, OutcomeClass.LOST, OutcomeClass.UNSENDABLE).attempts == 1


def test_without_a_breaker_nothing_is_counted() -> None:
    of = factories.subscription(endpoint=URL, policy=Policy.objects.get(name="teamforge"))
    row = factories.delivery(subscription=of)

    async def scenario(commits: GroupCommit) -> None:
        await serve_lanes(commits, [row.lane_id or 0])
        await commits.commit(row.lane_id or 0, settlement(row, outcome=FAILED))

    with_group_commit(scenario)
    assert not UrlHealth.objects.exists()


def answered(of: Subscription, *status_codes: int) -> UrlHealth:
    """Commit these answers together and return the URL's health."""
    rows = [factories.delivery(subscription=of) for _ in status_codes]
    settlements = [
        settlement(row, outcome=class_of(code), status_code=code, counted_subscription_id=of.pk)
        for row, code in zip(rows, status_codes, strict=True)
    ]

    async def scenario(commits: GroupCommit) -> None:
        lane_id = rows[0].lane_id or 0
        await serve_lanes(commits, [lane_id])
        await commits.commit(lane_id, *settlements)

    with_group_commit(scenario)
    return UrlHealth.objects.get()


def test_a_410_freezes_the_url_at_once_under_a_policy_that_says_so() -> None:
    assert answered(breaking(freezes_when_gone=True), 410).state == UrlState.FROZEN
    entry = JournalEntry.objects.get(kind=JournalKind.FROZEN)
    assert entry.text == f"{URL} is frozen: it answered 410 (Gone). Release it when it works again."


def test_a_410_is_a_failure_like_any_other_under_another_policy() -> None:
    assert answered(breaking(), 410).state == UrlState.ENABLED


def test_other_answers_freeze_nothing_at_once() -> None:
    assert answered(breaking(freezes_when_gone=True), 404, 500, 429).state == UrlState.ENABLED


def test_a_410_freezes_a_disabled_url() -> None:
    of = breaking(freezes_when_gone=True)
    assert tried(of, *[FAILED] * 5).state == UrlState.DISABLED
    health = answered(of, 410)
    assert (health.state, health.next_probe_at) == (UrlState.FROZEN, None)
    assert journal() == [JournalKind.DISABLED, JournalKind.FROZEN]


def test_a_success_beside_or_after_a_410_does_not_release_the_url() -> None:
    of = breaking(freezes_when_gone=True)
    assert answered(of, 410, 200).state == UrlState.FROZEN
    assert answered(of, 200).state == UrlState.FROZEN
    assert journal() == [JournalKind.FROZEN]
