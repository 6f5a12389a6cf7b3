"""A replay: requested, completed from its subscription, started, cancelled; or refused."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from delivery import pipeline
from delivery.models import Archived, JournalEntry, PipelineRun, Replay, ReplayState, RunState
from delivery.support.replays.replays import (
    ReplayRefusedError,
    cancel_replay,
    request_replay,
    run_of,
    select_again,
    start_replay,
)
from subscriptions.models import ConfigurationChange, Kind, Subscription
from tests.support import factories
from tests.unit.delivery.support.replays.ready_replay import ready

pytestmark = pytest.mark.django_db

FILTER = "$$->'Body'->'n' = 1"


@pytest.fixture
def until() -> Any:
    until = timezone.now() - timedelta(hours=1)
    Archived.objects.create(pk=1, until=until)
    return until


@pytest.fixture
def subscription() -> Subscription:
    return factories.subscription("orders", filter=FILTER, header_filter_string="x")


def asked(subscription: Subscription, **options: Any) -> Replay:
    options.setdefault("since", timezone.now() - timedelta(days=1))
    return request_replay(subscription, actor="ann", **options)


class TestAsking:
    def test_takes_omitted_values_from_the_subscription(
        self, subscription: Subscription, until: Any
    ) -> None:
        replay = asked(subscription)
        assert (replay.filter, replay.header_filter_string, replay.until) == (FILTER, "x", until)
        assert replay.event_types == [subscription.event_type.name]
        assert (replay.state, replay.rate, replay.asked_by) == (ReplayState.SELECTING, None, "ann")

    def test_takes_an_empty_text_for_no_condition(
        self, subscription: Subscription, until: Any
    ) -> None:
        replay = asked(subscription, filter="", header_filter_string="")
        assert (replay.filter, replay.header_filter_string) == ("", "")

    def test_takes_the_requested_values(self, subscription: Subscription, until: Any) -> None:
        other = factories.event_type()
        replay = asked(
            subscription,
            filter="$$->'Body' is null",
            event_types=[other.name, other.name],
            rate=2.5,
        )
        assert (replay.filter, replay.event_types, replay.rate) == (
            "$$->'Body' is null",
            [other.name],
            2.5,
        )

    def test_is_recorded_in_journal_and_configuration_log(
        self, subscription: Subscription, until: Any
    ) -> None:
        replay = asked(subscription)
        entry = JournalEntry.objects.get()
        assert (entry.kind, entry.actor, entry.subscription_id) == (
            "REPLAYED",
            "ann",
            subscription.pk,
        )
        change = ConfigurationChange.objects.get()
        assert (change.action, change.object_name) == ("created", f"replay {replay.pk}")
        assert change.after is not None
        assert change.after["filter"] == FILTER

    @pytest.mark.parametrize(
        ("options", "field", "words"),
        [
            ({"filter": "$$->'Body'->'n' ="}, "filter", "line 1, column"),
            ({"until": timezone.now()}, "until", "run the export first"),
            ({"since": timezone.now()}, "since", "before until"),
            ({"event_types": ["No.Such"]}, "event_types", "'No.Such'"),
            ({"event_types": ["Inturn.Callback"]}, "event_types", "Inturn.Callback"),
            ({"rate": 0}, "rate", "0.01 to 500"),
        ],
    )
    def test_is_refused_with_the_next_step(
        self,
        subscription: Subscription,
        until: Any,
        options: dict[str, Any],
        field: str,
        words: str,
    ) -> None:
        with pytest.raises(ReplayRefusedError) as refused:
            asked(subscription, **options)
        assert refused.value.field == field
        assert words in refused.value.detail
        assert not Replay.objects.exists()
        assert not PipelineRun.objects.exists()

    def test_before_anything_is_archived_is_refused(self, subscription: Subscription) -> None:
        with pytest.raises(ReplayRefusedError, match="Nothing is archived yet"):
            asked(subscription)

    def test_of_a_sync_event_type_is_refused(self, until: Any) -> None:
        sync = factories.subscription(event_type=factories.event_type(kind=Kind.SYNC))
        with pytest.raises(ReplayRefusedError, match="SYNC"):
            asked(sync)


class TestItsStates:
    def test_only_a_ready_one_is_started_and_once(
        self, subscription: Subscription, until: Any
    ) -> None:
        assert not start_replay(asked(subscription), actor="bob")
        replay = ready(subscription, [1, 2])
        assert start_replay(replay, actor="bob")
        assert replay.state == ReplayState.RUNNING
        assert not start_replay(replay, actor="bob")

    def test_a_replay_cancelled_during_selection_stops_its_run(
        self, subscription: Subscription, until: Any
    ) -> None:
        replay = asked(subscription)
        assert cancel_replay(replay, actor="bob")
        assert (replay.state, replay.ended_at is None) == (ReplayState.CANCELLED, False)
        run = run_of(replay)
        assert run is not None
        assert run.state == RunState.CANCELLED
        assert not cancel_replay(replay, actor="bob")

    def test_a_replay_whose_run_failed_shows_why_and_is_selected_again(
        self, subscription: Subscription, until: Any
    ) -> None:
        replay = asked(subscription)
        assert not select_again(replay, actor="bob")
        run = run_of(replay)
        assert run is not None
        pipeline.runs.refuse_run(run, error="no room", now=timezone.now())
        replay.refresh_from_db()
        assert (replay.state, replay.error) == (ReplayState.FAILED, "no room")
        assert select_again(replay, actor="bob")
        assert (replay.state, replay.error, replay.ended_at) == (ReplayState.SELECTING, "", None)
        again = run_of(replay)
        assert again is not None
        assert (again.pk > run.pk, again.state) == (True, RunState.WAITING)
