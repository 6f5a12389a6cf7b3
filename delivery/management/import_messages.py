"""`import backlog`, `import delivered`, `import reserve`: messages of an old broker."""

import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.db import IntegrityError
from django.db.models import Count
from django.utils import timezone

from delivery.lifecycle import journal
from delivery.management.importing.backlog import Backlog, ImportRefusedError
from delivery.management.importing.backlog_lines import BacklogLines
from delivery.management.importing.delivered_keys import Delivered
from delivery.management.importing.reservation import (
    MAX_MESSAGES,
    reservation_with_room,
    reserve_ids,
)
from delivery.management.importing.takeover_report import TakenOver, taken_over_report
from delivery.management.terminal_user import terminal_user
from delivery.models import Delivery, JournalKind, MessageReservation
from delivery.states import OPEN
from subscriptions.models import Publisher, Subscription, SubscriptionStatus
from subscriptions.values.counts import counted
from subscriptions.values.times import time_text

HAS_CHANGES = 2
PROGRESS_LINES = 20_000

Options = dict[str, Any]
Write = Callable[[str], object]


def add_message_commands(commands: Any) -> None:
    """Add the subcommands to `import`."""
    backlog = commands.add_parser(
        "backlog",
        help="messages that the old broker has not delivered yet: store and deliver them here",
    )
    _add_file(backlog)
    backlog.add_argument("--publisher", default="", help="publisher of the lines that name none")
    backlog.add_argument(
        "--source",
        default="old-broker",
        help="name of the old broker, within which keys are unique",
    )
    backlog.set_defaults(act=import_backlog)
    delivered = commands.add_parser(
        "delivered", help="messages that the old broker has delivered: do not send them again"
    )
    _add_file(delivered)
    delivered.set_defaults(act=import_delivered)
    reserving = commands.add_parser(
        "reserve",
        help=(
            "keep places for COUNT messages of a backlog, before all that is published from now on"
        ),
    )
    reserving.add_argument("count", type=int)
    reserving.set_defaults(act=import_reserve)


def _add_file(parser: CommandParser) -> None:
    parser.add_argument(
        "file", type=Path, help="CSV with a header row if its name ends in .csv, else JSON lines"
    )
    parser.add_argument(
        "--apply", action="store_true", help="import it (default: check and report only)"
    )
    parser.add_argument(
        "--skip-faulty", action="store_true", help="import the other lines if some are faulty"
    )


def import_backlog(options: Options, write: Write) -> int:
    if options["publisher"] and not Publisher.objects.filter(name=options["publisher"]).exists():
        raise CommandError(f"There is no publisher {options['publisher']!r}; create it first.")
    backlog = Backlog(BacklogLines(options["file"], options["source"], options["publisher"]))
    checked = backlog.check()
    reservation = reservation_with_room(checked.messages) if checked.messages else None
    checked.notes += _notes_of_backlog(checked, reservation)
    _show(checked, options, write, noun="delivery")
    if not checked.messages:
        return 0
    if not options["apply"]:
        write(f"Nothing is changed. --apply imports {_messages(checked)}.")
        return HAS_CHANGES
    _record(f"Begins: import of the backlog {options['file']}, {_messages(checked)}.")
    try:
        done = backlog.apply(reservation, progress=_progress(checked.lines))
    except (ImportRefusedError, IntegrityError) as error:
        raise CommandError(_words(error)) from error
    _record(f"Done: import of the backlog {options['file']}, {_messages(done)}.")
    write(f"Imported: {_messages(done)}.")
    return 0


def import_delivered(options: Options, write: Write) -> int:
    delivered = Delivered(options["file"], timezone.now())
    checked = delivered.check()
    if not options["apply"] or checked.faults or not checked.deliveries:
        _show(checked, options, write, noun="key")
    if not checked.deliveries:
        return 0
    if not options["apply"]:
        write(f"Nothing is changed. --apply remembers {counted(checked.deliveries, 'key')}.")
        return HAS_CHANGES
    what = f"import of {options['file']}, delivered by the old broker"
    _record(f"Begins: {what}, {counted(checked.deliveries, 'key')}.")
    done = delivered.apply(progress=_progress(checked.lines))
    _record(f"Done: {what}, {counted(done.deliveries, 'key')}.")
    done.faults = 0
    done.listed = []
    for line in taken_over_report(done, noun="key"):
        write(line)
    write(f"Imported: {counted(done.deliveries, 'key')}.")
    return 0


def import_reserve(options: Options, write: Write) -> int:
    if not 1 <= options["count"] <= MAX_MESSAGES:
        raise CommandError(f"COUNT must be from 1 to {MAX_MESSAGES:,}.")
    reservation = reserve_ids(options["count"])
    reserved = f"Reserved places for {counted(options['count'], 'message')}: {reservation}."
    _record(reserved)
    write(reserved)
    write("A backlog imported from now on is sent before all messages published from now on.")
    return 0


def _show(checked: TakenOver, options: Options, write: Write, *, noun: str) -> None:
    """Write the report; raise CommandError if faulty lines may not be skipped."""
    for line in taken_over_report(checked, noun=noun):
        write(line)
    if checked.faults and not options["skip_faulty"]:
        raise CommandError(
            f"Nothing is changed: {checked.faults:,} of {counted(checked.lines, 'line')} cannot be "
            "imported. Correct them, or leave them out by --skip-faulty."
        )


def _messages(found: TakenOver) -> str:
    return f"{counted(found.messages, 'message')} with {counted(found.deliveries, 'delivery')}"


def _record(text: str) -> None:
    """Write the journal before and after an import, which is of many transactions."""
    journal.record_entry(JournalKind.IMPORTED, text, actor=terminal_user())


def _notes_of_backlog(checked: TakenOver, reservation: MessageReservation | None) -> list[str]:
    if not checked.messages:
        return []
    notes = [
        (
            "published now, with the old id and time in the headers original-id and "
            "original-published-at; their time to live begins with the import"
        )
    ]
    ids = list(checked.of_subscription)
    if reservation is not None:
        notes.append(f"sent before all messages published since {time_text(reservation.made_at)}")
    else:
        notes += _behind(ids)
    if flowing := _flowing(ids):
        notes.append(f"sent at once, because they are not HELD: {_some(flowing)}")
    if inactive := _inactive(ids):
        notes.append(f"waits until they are made ACTIVE: {_some(inactive)}")
    return notes


def _behind(subscription_ids: list[int]) -> Iterable[str]:
    """Yield a line for each subscriber with waiting messages, which are before the backlog."""
    subscribers = Subscription.objects.filter(pk__in=subscription_ids).values("subscriber_id")
    waiting = (
        Delivery.objects.filter(status__in=OPEN, subscription__subscriber__in=subscribers)
        .values_list("subscription__subscriber__name")
        .annotate(count=Count("id"))
        .order_by("subscription__subscriber__name")
    )
    for name, count in waiting:
        yield (
            f"sent after the backlog of {name}, {counted(count, 'delivery')}, "
            "because no places were reserved for it"
        )


def _flowing(subscription_ids: list[int]) -> list[str]:
    return _names(
        subscription_ids,
        status=SubscriptionStatus.ACTIVE,
        subscriber__status=SubscriptionStatus.ACTIVE,
    )


def _inactive(subscription_ids: list[int]) -> list[str]:
    return _names(subscription_ids, status=SubscriptionStatus.INACTIVE)


def _names(subscription_ids: list[int], **wanted: Any) -> list[str]:
    found = Subscription.objects.filter(pk__in=subscription_ids, **wanted).select_related(
        "subscriber"
    )
    return sorted(f"{subscription.subscriber.name}/{subscription.name}" for subscription in found)


def _some(names: list[str]) -> str:
    more = f" and {len(names) - 5:,} more" if len(names) > 5 else ""
    return ", ".join(names[:5]) + more


def _progress(lines: int) -> Callable[[TakenOver], object]:
    shown = 0

    def progress(found: TakenOver) -> None:
        nonlocal shown
        if found.lines - shown >= PROGRESS_LINES:
            shown = found.lines
            sys.stderr.write(f"{found.lines:,} of {counted(lines, 'line')}\n")

    return progress


def _words(error: Exception) -> str:
    if isinstance(error, IntegrityError):
        return (
            "The configuration was changed meanwhile. Repeat the command: "
            "it goes on where it ended."
        )
    return str(error)
