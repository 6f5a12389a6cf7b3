"""Ten thousand subscriptions are planned and applied by few statements.

With nothing beside it, a machine with two cores takes half a minute.
"""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection

from subscriptions.models import Subscription
from tests.unit.delivery.configuration.document.documents import apply, document, plan

SUBSCRIPTIONS = 10_000
# Each inserts or reads many rows.
MOST_STATEMENTS = 2_000
MOST_OF_A_PLAN = 50


class StatementCount:
    """Counts the statements that it executes, for `connection.execute_wrapper`."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, execute: Callable[..., Any], *statement: Any) -> Any:
        self.count += 1
        return execute(*statement)


@pytest.mark.slow
@pytest.mark.django_db
def test_ten_thousand_subscriptions_are_applied_by_few_statements() -> None:
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
    applying, planning = StatementCount(), StatementCount()
    with connection.execute_wrapper(applying):
        apply(content, secrets={"env:KEY": "secret"})
    with connection.execute_wrapper(planning):
        assert plan(content, secrets={"env:KEY": "secret"}).changes == []
    assert Subscription.objects.count() == SUBSCRIPTIONS
    assert applying.count < MOST_STATEMENTS
    assert planning.count < MOST_OF_A_PLAN
