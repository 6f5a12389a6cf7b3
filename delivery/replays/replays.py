"""Replays as people ask for them: wished, selected, looked at, started and cancelled.

A replay delivers messages of the archive to one subscription, in the order of their publication, as new deliveries that are
marked. `delivery.history.steps.replay` selects them, `delivery.replays.deliver` makes the deliveries.

    ask ▶ SELECTING ── the run selects ──▶ READY ── start ──▶ RUNNING ── all are made ──▶ DONE
           │    ▲                            │                   │
           │    └ select_again ─ FAILED ◀─ the run failed        │
           └────────────── cancel ───────────┴───────────────────┴──▶ CANCELLED

Two persons at once, or a person and the duty: each change is a conditional UPDATE, and who comes second finds nothing to change.
Of what was made until a replay is cancelled nothing is taken back: it may have been received.
"""

from collections.abc import Collection
from datetime import datetime
from typing import TypedDict, Unpack

from django.db import transaction
from django.utils import timezone

from delivery import pipeline
from delivery.lifecycle import journal
from delivery.models import JournalKind, PipelineRun, Replay, ReplayState, Step
from delivery.replays.requests import ReplayRefusedError, Wished, checked_request
from subscriptions import changes
from subscriptions.models import Subscription

__all__ = ["ReplayRefusedError", "cancel", "request_replay", "select_again", "start"]

ENDED = (ReplayState.DONE, ReplayState.CANCELLED, ReplayState.FAILED)


def request_replay(
    subscription: Subscription, *, actor: str, now: datetime | None = None, **wished: Unpack[Wished]
) -> Replay:
    """Store a replay for the pipeline to select; what is not wished is as the subscription has it. Raises ReplayRefusedError."""
    fields = checked_request(subscription, wished)
    with transaction.atomic():
        replay = Replay.objects.create(subscription=subscription, asked_by=actor, **fields)
        replay.refresh_from_db()
        text = f"Asked for: messages published from {_moment(replay.since)} to {_moment(replay.until)}."
        _record(replay, text, actor)
        after = changes.snapshot(replay)
        changes.record(actor=actor, action="created", instance=replay, before=None, after=after)
        _have_selected(replay, actor=actor, now=now or timezone.now())
    return replay


def select_again(replay: Replay, *, actor: str, now: datetime | None = None) -> bool:
    """Have one whose selection FAILED selected once more; False if it did not fail."""
    with transaction.atomic():
        if not _change(replay, [ReplayState.FAILED], state=ReplayState.SELECTING, error="", ended_at=None):
            return False
        _record(replay, "It is selected again.", actor)
        _have_selected(replay, actor=actor, now=now or timezone.now())
    return True


def start(replay: Replay, *, actor: str, now: datetime | None = None) -> bool:
    """Have the deliveries of one that is READY made; False if it is not."""
    with transaction.atomic():
        before = replay.state
        due_at = now or timezone.now()
        if not _change(replay, [ReplayState.READY], state=ReplayState.RUNNING, due_at=due_at):
            return False
        _record(replay, f"Begins: {replay.count:,} messages are to be delivered.", actor)
        _note_state(replay, "started", before=before, actor=actor)
    return True


def cancel(replay: Replay, *, actor: str, now: datetime | None = None) -> bool:
    """End it; the deliveries that were made stay, and go on. False if it had ended."""
    with transaction.atomic():
        before = replay.state
        open_states = [state for state in ReplayState if state not in ENDED]
        ended_at = now or timezone.now()
        if not _change(replay, open_states, state=ReplayState.CANCELLED, ended_at=ended_at):
            return False
        if before == ReplayState.SELECTING and (run := run_of(replay)) is not None:
            pipeline.stop(run, actor=actor)
        made = f" after {replay.done:,} of {replay.count:,}; {replay.made:,} deliveries were made"
        _record(replay, f"Cancelled{made if replay.count else ''}.", actor)
        _note_state(replay, "cancelled", before=before, actor=actor)
    return True


def run_of(replay: Replay) -> PipelineRun | None:
    """Return the newest run that selects, or selected, its messages."""
    runs = PipelineRun.objects.filter(step=Step.REPLAY, options__replay=replay.pk)
    return runs.order_by("-id").first()


class _Changed(TypedDict, total=False):
    state: ReplayState
    error: str
    due_at: datetime
    ended_at: datetime | None


def _change(replay: Replay, states: Collection[ReplayState], **changed: Unpack[_Changed]) -> bool:
    """Change it if it is in one of these states; it is as it is now, then."""
    done = Replay.objects.filter(pk=replay.pk, state__in=states).update(**changed)
    replay.refresh_from_db()
    return bool(done)


def _have_selected(replay: Replay, *, actor: str, now: datetime) -> None:
    pipeline.request_run(Step.REPLAY, options={"replay": replay.pk}, actor=actor, now=now)


def _record(replay: Replay, text: str, actor: str) -> None:
    text = f"{str(replay).capitalize()} to {replay.subscription}. {text}"
    journal.record(JournalKind.REPLAYED, text, actor=actor, subscription_id=replay.subscription_id)


def _note_state(replay: Replay, action: str, *, before: str, actor: str) -> None:
    was, now = {"state": str(before)}, {"state": replay.state}
    changes.record(actor=actor, action=action, instance=replay, before=was, after=now)


def _moment(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"
