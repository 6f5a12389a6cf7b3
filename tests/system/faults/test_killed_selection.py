"""A replay's selection is killed -9 while it stores its result, and is repeated."""

from datetime import timedelta
from pathlib import Path

import pytest
from django.utils import timezone

from delivery.models import Replay, ReplayItem, ReplayState
from delivery.pipeline.cleanup import end_orphaned_runs
from delivery.support.replays.replays import request_replay, run_of, select_again
from tests.support import factories
from tests.unit.delivery.history.archived import AT
from tests.unit.delivery.history.commands import history, kill_where_it_writes
from tests.unit.delivery.support.replays.ready_replay import archived

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]


def select(replay: Replay, archive: Path, *, kill: bool = False) -> None:
    run = run_of(replay)
    assert run is not None
    if kill:
        kill_where_it_writes("delivery_replayitem", "run", str(run.pk), archive=archive)
    else:
        history("run", str(run.pk), archive=archive)
    replay.refresh_from_db()


def test_a_killed_selection_is_repeated_without_duplicates(tmp_path: Path) -> None:
    archive = tmp_path / "archive"
    subscription = factories.subscription()
    archived(archive, subscription.event_type, range(1, 51))
    replay = request_replay(subscription, since=AT - timedelta(days=1), actor="ann")
    select(replay, archive, kill=True)
    assert (replay.state, ReplayItem.objects.count()) == (ReplayState.SELECTING, 0)
    end_orphaned_runs(timezone.now())
    replay.refresh_from_db()
    assert replay.state == ReplayState.FAILED
    assert "killed" in replay.error
    assert select_again(replay, actor="ann")
    select(replay, archive)
    assert (replay.state, replay.count, ReplayItem.objects.count()) == (ReplayState.READY, 50, 50)
