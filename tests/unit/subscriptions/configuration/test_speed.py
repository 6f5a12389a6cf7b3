"""Ten thousand subscriptions are planned and applied within a minute."""

import time

import pytest

from subscriptions.models import Subscription
from tests.unit.subscriptions.configuration.documents import apply, document, plan

SUBSCRIPTIONS = 10_000
SECONDS = 60


@pytest.mark.slow
@pytest.mark.django_db
def test_ten_thousand_subscriptions_are_applied_within_a_minute() -> None:
    content = document(
        event_types=[{"name": f"Orders.{number}"} for number in range(100)],
        subscribers=[{"name": f"s{number}"} for number in range(500)],
        subscriptions=[
            {
                "subscriber": f"s{number % 500}",
                "name": f"n{number}",
                "event_type": f"Orders.{number % 100}",
                "endpoint": f"https://8.8.4.{number % 250}/hooks/{number}",
                "filter": f"$$->'Body'->'project'->>'id' = 'proj{number}' "
                "AND $$->'Header'->>'P' in ('low', 'high')",
                "headers": {"X-Key": {"from": "env:KEY"}},
            }
            for number in range(SUBSCRIPTIONS)
        ],
    )
    began = time.monotonic()
    apply(content, secrets={"env:KEY": "secret"})
    applied = time.monotonic()
    assert plan(content, secrets={"env:KEY": "secret"}).changes == []
    print(
        f"applied in {applied - began:.1f} s, planned again in {time.monotonic() - applied:.1f} s"
    )
    assert Subscription.objects.count() == SUBSCRIPTIONS
    assert applied - began < SECONDS
