"""Replays as people use them: requested, selected, reviewed, started and cancelled.

Each change is a conditional UPDATE, so the second of two concurrent changes has no effect.
`README.md` has the states.
"""

from collections.abc import Collection
from datetime import datetime
from typing import TypedDict, Unpack

from django.db import transaction
from django.utils import timezone

from delivery import pipeline
from delivery.lifecycle import journal
from delivery.models import JournalKind, PipelineRun, Replay, ReplayState, Step
from delivery.support.replays.requests import ReplayRefusedError, ReplayRequest, checked_request
from subscriptions import changes
from subscriptions.models import Subscription
from subscriptions.values.counts import counted
from subscriptions.values.times import time_text

__all__ = ["ReplayRefusedError", "cancel_replay", "request_replay", "select_again", "start_replay"]

ENDED = (ReplayState.DONE, ReplayState.CANCELLED, ReplayState.FAILED)


def request_replay(
    subscription: Subscription,
    *,
    actor: str,
    now: datetime | None = None,
    **request: Unpack[ReplayRequest],
) -> Replay:
    """Store a replay for the pipeline to select; raises ReplayRefusedError.

    Omitted fields are taken from the subscription.
    """
    fields = checked_request(subscription, request)
    with transaction.atomic():
        replay = Replay.objects.create(subscription=subscription, asked_by=actor, **fields)
        replay.refresh_from_db()
        text = (
            f"Requested: messages published from {time_text(replay.since)} to "
            f"{time_text(replay.until)}."
        )
        _record(replay, text, actor)
        after = changes.snapshot(replay)
        changes.record_change(
            actor=actor, action="created", instance=replay, before=None, after=after
        )
        _have_selected(replay, actor=actor, now=now or timezone.now())
    return replay


def select_again(replay: Replay, *, actor: str, now: datetime | None = None) -> bool:
    """Request the selection again after it FAILED; False if the replay is not FAILED."""
    with transaction.atomic():
        if not _change(
            replay, [ReplayState.FAILED], state=ReplayState.SELECTING, error="", ended_at=None
        ):
            return False
        _record(replay, "It is selected again.", actor)
        _have_selected(replay, actor=actor, now=now or timezone.now())
    return True


def start_replay(replay: Replay, *, actor: str, now: datetime | None = None) -> bool:
    """Start creating the deliveries of a READY replay; False if it is not READY."""
    with transaction.atomic():
        before = replay.state
        due_at = now or timezone.now()
        if not _change(replay, [ReplayState.READY], state=ReplayState.RUNNING, due_at=due_at):
            return False
        _record(replay, f"Begins: {counted(replay.count, 'message')} to deliver.", actor)
        _note_state(replay, "started", before=before, actor=actor)
    return True


def cancel_replay(replay: Replay, *, actor: str, now: datetime | None = None) -> bool:
    """Cancel a replay; deliveries already created are kept and sent. False if it had ended."""
    with transaction.atomic():
        before = replay.state
        open_states = [state for state in ReplayState if state not in ENDED]
        ended_at = now or timezone.now()
        if not _change(replay, open_states, state=ReplayState.CANCELLED, ended_at=ended_at):
            return False
        if before == ReplayState.SELECTING and (run := run_of(replay)) is not None:
            pipeline.stop_run(run, actor=actor)
        made = (
            f" after {replay.done:,} of {replay.count:,}; {counted(replay.made, 'delivery')} made"
        )
        _record(replay, f"Cancelled{made if replay.count else ''}.", actor)
        _note_state(replay, "cancelled", before=before, actor=actor)
    return True


def run_of(replay: Replay) -> PipelineRun | None:
    """Return the newest selecting run of the replay's messages."""
    runs = PipelineRun.objects.filter(step=Step.REPLAY, options__replay=replay.pk)
    return runs.order_by("-id").first()


class _Changed(TypedDict, total=False):
    state: ReplayState
    error: str
    due_at: datetime
    ended_at: datetime | None


def _change(replay: Replay, states: Collection[ReplayState], **changed: Unpack[_Changed]) -> bool:
    """Change the replay if it is in any of these states, and refresh the instance in any case."""
    done = Replay.objects.filter(pk=replay.pk, state__in=states).update(**changed)
    replay.refresh_from_db()
    return bool(done)


def _have_selected(replay: Replay, *, actor: str, now: datetime) -> None:
    pipeline.request_run(Step.REPLAY, options={"replay": replay.pk}, actor=actor, now=now)


def _record(replay: Replay, text: str, actor: str) -> None:
    text = f"{str(replay).capitalize()} to {replay.subscription}. {text}"
    journal.record_entry(
        JournalKind.REPLAYED, text, actor=actor, subscription_id=replay.subscription_id
    )


def _note_state(replay: Replay, action: str, *, before: str, actor: str) -> None:
    old, now = {"state": str(before)}, {"state": replay.state}
    changes.record_change(actor=actor, action=action, instance=replay, before=old, after=now)
