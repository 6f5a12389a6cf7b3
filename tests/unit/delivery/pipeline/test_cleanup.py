"""Cleanup: a run whose lock is free is dead; old runs are deleted with their findings."""

import dataclasses
import os
from datetime import timedelta
from pathlib import Path

import pytest
from django.conf import settings
from django.utils import timezone

from delivery.models import Finding, PipelineRun, ReplayState, RunState, Step
from delivery.pipeline import cleanup
from delivery.pipeline import settings as surroundings
from tests.unit.delivery.pipeline import rows

pytestmark = pytest.mark.django_db


def test_a_run_without_its_process_has_failed_and_names_the_next_step() -> None:
    run = rows.run(state=RunState.RUNNING)
    assert cleanup.end_orphaned_runs(timezone.now()) == 1
    run.refresh_from_db()
    assert run.state == RunState.FAILED
    assert "the next run continues" in run.error
    assert cleanup.end_orphaned_runs(timezone.now()) == 0


def test_a_locked_run_is_not_touched() -> None:
    run = rows.run(state=RunState.RUNNING)
    with rows.held(run):
        assert cleanup.end_orphaned_runs(timezone.now()) == 0
    assert cleanup.end_orphaned_runs(timezone.now()) == 1


def test_waiting_and_ended_runs_are_not_touched() -> None:
    for state in RunState:
        if state != RunState.RUNNING:
            rows.run(state=state)
    assert cleanup.end_orphaned_runs(timezone.now()) == 0


def test_the_replay_of_a_killed_selection_has_failed_too() -> None:
    replay = rows.replay()
    rows.run(Step.REPLAY, RunState.RUNNING, options={"replay": replay.pk})
    cleanup.end_orphaned_runs(timezone.now())
    replay.refresh_from_db()
    assert (replay.state, replay.error) == (ReplayState.FAILED, cleanup.KILLED)


def test_old_runs_are_removed_except_the_newest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cleanup, "KEPT_RUNS", 2)
    long_ago = timezone.now() - cleanup.KEPT - timedelta(days=1)
    old = [rows.run(Step.VERIFY, RunState.DONE, ended_at=long_ago) for _ in range(4)]
    Finding.objects.create(run=old[0], kind="ORDER", text="")
    assert cleanup.remove_old_runs(timezone.now()) == 2
    assert list(PipelineRun.objects.order_by("id")) == old[2:]
    assert not Finding.objects.exists()


def test_recent_and_open_runs_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cleanup, "KEPT_RUNS", 0)
    rows.run(asked_at=timezone.now() - timedelta(days=400))
    rows.run(Step.VERIFY, RunState.DONE)
    assert cleanup.remove_old_runs(timezone.now()) == 0


def test_reports_of_long_ago_are_removed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(
        settings, "ENVIRONMENT", dataclasses.replace(settings.ENVIRONMENT, home=tmp_path)
    )
    assert cleanup.forget_reports(timezone.now()) == 0
    surroundings.reports_folder().mkdir()
    for name in ("new.csv", "old.csv"):
        (surroundings.reports_folder() / name).write_text("")
    long_ago = (timezone.now() - cleanup.KEPT - timedelta(days=1)).timestamp()
    os.utime(surroundings.reports_folder() / "old.csv", (long_ago, long_ago))
    assert cleanup.forget_reports(timezone.now()) == 1
    assert [file.name for file in surroundings.reports_folder().iterdir()] == ["new.csv"]
