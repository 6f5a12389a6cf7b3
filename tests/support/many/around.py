"""The rows around the messages: configuration changes, jobs, retention passes, URL health."""

from datetime import datetime, timedelta

from delivery.models import (
    Resubmission,
    ResubmissionState,
    RetentionRun,
    RetentionState,
    UrlHealth,
    UrlState,
)
from subscriptions.models import ConfigurationChange, Subscription
from tests.support.many.sizes import Sizes

_ACTORS = ("ann", "bob", "key …x1Zq", "carol")
JOBS = 200
PASSES = 30


def write_around(sizes: Sizes, *, now: datetime) -> None:
    _write_changes(sizes.changes, now=now)
    Resubmission.objects.bulk_create(
        Resubmission(
            filter={"status": ["FAILED"]},
            actor=_ACTORS[number % 2],
            state=ResubmissionState.DONE,
            count=40,
            done=40,
            changed=38,
            created_at=now - timedelta(hours=JOBS - number),
            next_at=now - timedelta(hours=JOBS - number),
            ended_at=now - timedelta(hours=JOBS - number, seconds=-3),
        )
        for number in range(JOBS)
    )
    RetentionRun.objects.bulk_create(
        RetentionRun(
            state=RetentionState.DONE,
            messages=12_000,
            deliveries=36_000,
            attempts=39_000,
            started_at=now - timedelta(days=PASSES - number),
            ended_at=now - timedelta(days=PASSES - number, seconds=-140),
        )
        for number in range(PASSES)
    )
    _write_url_health(now=now)


def _write_changes(count: int, *, now: datetime) -> None:
    rows = list(
        ConfigurationChange.objects.bulk_create(
            ConfigurationChange(
                actor=_ACTORS[number % 4],
                action="changed" if number % 5 else "created",
                object_type="subscription",
                object_name=f"subscriber-{number % 1000:04}/subscription-{number % 3000:04}",
                before={"timeout_seconds": number % 60, "status": "ACTIVE"} if number % 5 else None,
                after={"timeout_seconds": number % 30, "status": "INACTIVE"},
            )
            for number in range(count)
        )
    )
    for number, row in enumerate(rows):
        # `at` is set to now on creation.
        row.at = now - timedelta(days=90) * (1 - number / count)
    ConfigurationChange.objects.bulk_update(rows, ["at"], batch_size=2_000)


def _write_url_health(*, now: datetime) -> None:
    states = {1: UrlState.DISABLED, 2: UrlState.FROZEN}
    watched = Subscription.objects.filter(policy__breaks_circuit=True).exclude(endpoint="")
    rows = []
    for number, url in enumerate(sorted(set(watched.values_list("endpoint", flat=True)))):
        state = states.get(number % 40, UrlState.ENABLED)
        failing = state != UrlState.ENABLED
        rows.append(
            UrlHealth(
                url=url,
                state=state,
                since=now - timedelta(days=5),
                attempts=4_000,
                failures=3_900 if failing else 12,
                failures_in_row=3_000 if failing else 0,
                last_success_at=now - timedelta(days=5 if failing else 0),
                first_success_at=now - timedelta(days=30),
                next_probe_at=now + timedelta(minutes=5) if state == UrlState.DISABLED else None,
            )
        )
    UrlHealth.objects.bulk_create(rows, ignore_conflicts=True)
