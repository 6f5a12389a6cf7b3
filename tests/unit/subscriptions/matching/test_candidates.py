"""The look-up of candidates: each column reaches its own field."""

from typing import Any

import pytest
from pytest_django import DjangoAssertNumQueries

from subscriptions.matching import candidates
from subscriptions.matching.candidates import Candidate, find_candidates
from subscriptions.models import DedupMode, JoinMode, MatchMode, Mode
from tests.support import factories

pytestmark = pytest.mark.django_db


def test_each_column_reaches_the_field_of_its_name(
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    owner = factories.subscriber(
        match_mode=MatchMode.FIRST, processing="CONCURRENT", by_priority=True
    )
    given: dict[str, Any] = {
        "header_filter_string": "proj1008",
        "filter": "$$->'Body'->>'is' = 'red'",
        "dedup_mode": DedupMode.PATH,
        "dedup_path": "$$->'Body'->'dedup'",
        "join_mode": JoinMode.ALL,
        "join_name": "order",
        "join_path": "$$->'Body'->'join'",
        "takes_unmatched": True,
    }
    row = factories.subscription(subscriber=owner, status="SHADOW", **given)
    with django_assert_num_queries(1):
        (found,) = find_candidates(row.event_type_id, filter_strings=["proj1008"])
    assert found == Candidate(
        subscription_id=row.pk,
        subscriber_id=owner.pk,
        filter_identity=row.filter_identity,
        match_mode=MatchMode.FIRST,
        mode=Mode.PUSH,
        is_by_priority=True,
        is_shadow=True,
        **given,
    )


def test_a_swapped_column_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    written = candidates._CANDIDATES
    swapped = written.replace("subscription.join_name, subscription.join_path", "{}").format(
        "subscription.join_path, subscription.join_name"
    )
    monkeypatch.setattr(candidates, "_CANDIDATES", swapped)
    with pytest.raises(TypeError, match="join_path', 'join_name"):
        find_candidates(factories.event_type().pk, filter_strings=[])
