"""`history replay`: a replay from the request to the last delivery, in the terminal."""

import sys
import time
from argparse import ArgumentTypeError
from collections.abc import Callable
from datetime import datetime
from typing import Any

from django.core.management.base import CommandError, CommandParser
from tqdm import tqdm

from delivery.management.history_running import run_requested
from delivery.management.terminal_user import terminal_user
from delivery.models import Replay, ReplayState, RunState
from delivery.support.replays import replays
from delivery.support.replays.replays import ReplayRefusedError
from subscriptions.models import Subscription
from subscriptions.values.counts import counted
from subscriptions.values.references import subscription_condition
from subscriptions.values.times import parse_time

LOOK_SECONDS = 0.5
_UNDER_WAY = (ReplayState.SELECTING, ReplayState.READY, ReplayState.RUNNING)


def add_replay_arguments(parser: CommandParser) -> None:
    parser.add_argument("--subscription", required=True, help="id, or subscriber/subscription")
    parser.add_argument(
        "--since",
        required=True,
        type=parse_moment,
        help="UTC, such as 2026-11-22 or 2026-11-22T10:15",
    )
    parser.add_argument(
        "--until", type=parse_moment, help="before this time (default: all that is archived)"
    )
    parser.add_argument("--filter", help="default: the subscription's own; '' for none")
    parser.add_argument(
        "--event-type", action="append", help="may be repeated; default: the subscription's own"
    )
    parser.add_argument(
        "--rate", type=float, help="deliveries per second (default: as fast as possible)"
    )
    parser.add_argument("--yes", action="store_true", help="start it without asking")


def replay_now(options: dict[str, Any], *, write: Callable[[str], object]) -> None:
    """Select, show, confirm, start and follow a replay; raise CommandError.

    Ctrl-C while following leaves the replay running.
    """
    subscription = find_subscription(options["subscription"])
    try:
        replay = replays.request_replay(
            subscription,
            actor=terminal_user(),
            since=options["since"],
            until=options["until"],
            filter=options["filter"],
            event_types=options["event_type"],
            rate=options["rate"],
        )
    except ReplayRefusedError as refused:
        raise CommandError(f"{refused.field}: {refused.detail}") from None
    _select(replay)
    _show(replay, write)
    if not replay.count or not (options["yes"] or _is_confirmed(replay)):
        replays.cancel_replay(replay, actor=terminal_user())
        write(f"{replay} is cancelled; nothing was delivered.")
        return
    replays.start_replay(replay, actor=terminal_user())
    _follow(replay, write)


def find_subscription(text: str) -> Subscription:
    """Return the subscription of that id, or of that subscriber and name; raise CommandError."""
    condition = subscription_condition(text)
    rows = Subscription.objects.select_related("subscriber", "event_type").filter(**condition)
    # Several subscriptions may have a name alone.
    subscription = None if condition.keys() == {"name"} else rows.first()
    if subscription is None:
        raise CommandError(
            f"There is no subscription {text}; give its id, or subscriber/subscription."
        )
    return subscription


def parse_moment(text: str) -> datetime:
    """Parse a time; without a zone it is UTC."""
    try:
        return parse_time(text)
    except ValueError as error:
        raise ArgumentTypeError(
            f"{text} is no moment; write 2026-11-22 or 2026-11-22T10:15:00Z"
        ) from error


def _select(replay: Replay) -> None:
    run = replays.run_of(replay)
    assert run is not None
    if run.state == RunState.WAITING:
        try:
            run_requested(run.pk, write=lambda _: None)
        except CommandError:
            run.refresh_from_db()
            # The cluster has taken the run already, which is just as well.
            if run.state not in (RunState.RUNNING, RunState.DONE):
                raise
    _await_selected(replay)
    if replay.state != ReplayState.READY:
        raise CommandError(f"{replay} is {replay.state}. {replay.error}")


def _await_selected(replay: Replay) -> None:
    replay.refresh_from_db()
    while replay.state == ReplayState.SELECTING:
        time.sleep(LOOK_SECONDS)
        replay.refresh_from_db()


def _show(replay: Replay, write: Callable[[str], object]) -> None:
    write(
        f"{replay} to {replay.subscription}: {counted(replay.count, 'message')}, "
        f"{replay.since:%F %T} to {replay.until:%F %T} UTC"
    )
    for day in replay.preview:
        write(f"  {day['day']}  {day['count']:>12,}  {day['event']}")


def _is_confirmed(replay: Replay) -> bool:
    if not sys.stdin.isatty():
        raise CommandError(
            f"{replay} is READY: start or cancel it in the console. With --yes the command starts "
            "a replay without a question."
        )
    return input(
        f"Deliver {counted(replay.count, 'message')} to {replay.subscription} once more? [y/N] "
    ).lower() in (
        "y",
        "yes",
    )


def _follow(replay: Replay, write: Callable[[str], object]) -> None:
    replay.refresh_from_db()
    with tqdm(
        total=replay.count, unit=" messages", desc=str(replay), file=sys.stderr, disable=None
    ) as bar:
        while replay.state in _UNDER_WAY:
            time.sleep(LOOK_SECONDS)
            replay.refresh_from_db()
            bar.n = replay.done
            bar.set_postfix_str(replay.error, refresh=True)
    write(
        f"{replay}: {replay.state}; "
        f"made {counted(replay.made, 'delivery')} of {counted(replay.count, 'message')}."
    )
    if replay.state != ReplayState.DONE:
        raise CommandError(replay.error or f"It is {replay.state}.")
