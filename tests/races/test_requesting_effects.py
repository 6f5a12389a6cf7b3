"""Two people have the archive tried at once: one run for the same plan, and no run too many."""

from collections.abc import Callable
from typing import Any

import pytest
from django.utils import timezone

from delivery.configuration.archive_effect import request_effect
from delivery.models import PipelineRun
from delivery.pipeline import TooManyRunsError
from delivery.pipeline.request import MOST_WAITING
from tests.races.transactions import meet
from tests.support import factories
from tests.unit.delivery.configuration.document.documents import document, plan

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def planned() -> Any:
    row = factories.subscription("s", subscriber=factories.subscriber("abc"))
    changed = {"subscriber": "abc", "name": row.name, "filter": "$$->'Body'->>'id' = '1'"}
    return plan(document(subscriptions=[changed]))


def requesting(planned: Any, *, days: int) -> Callable[[], object]:
    return lambda: request_effect(planned, days=days, actor="tester", now=timezone.now())


def test_of_two_who_try_the_same_the_second_gets_the_firsts_run(planned: Any) -> None:
    assert meet(requesting(planned, days=30), requesting(planned, days=30)) is None
    assert PipelineRun.objects.count() == 1


def test_of_two_for_whom_one_place_is_left_the_second_is_refused(planned: Any) -> None:
    for days in range(1, MOST_WAITING):
        requesting(planned, days=days)()
    refusal = meet(requesting(planned, days=30), requesting(planned, days=31))
    assert isinstance(refusal, TooManyRunsError)
    assert PipelineRun.objects.count() == MOST_WAITING
