"""`compare`: compare archived deliveries with the log of another broker, by a key of messages."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from django.core.management.base import BaseCommand, CommandError, CommandParser

from delivery.management.history_replay import find_subscription, parse_moment
from delivery.management.history_running import FAILED, run_step
from delivery.models import Step
from subscriptions.models import Subscription

DIFFERENT, NOT_COMPARED = 1, 2
_COLUMNS = ("key", "status", "time", "subscription")

Options = dict[str, Any]


class Command(BaseCommand):
    help = (
        "Compare the archived deliveries with the log of another broker (CSV with a header row): "
        "only there, only here, other status, other order, each with its count and examples. "
        "Exit code 0: no difference; 1: there are differences; 2: nothing was compared; "
        "130: interrupted."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--theirs", required=True, help="the log: a file, or a URL that Spark can read"
        )
        parser.add_argument(
            "--key",
            required=True,
            help="where a message has the key: $$->'Body'->>'id', $$->'Header'->>'x-id'",
        )
        parser.add_argument(
            "--subscription", help="only this one's: id, or subscriber/subscription"
        )
        when = "UTC, such as 2026-11-22 or 2026-11-22T10:15"
        parser.add_argument(
            "--since", type=parse_moment, help=f"delivered at this time or later; {when}"
        )
        parser.add_argument(
            "--until", type=parse_moment, help="delivered before this time (default: all archived)"
        )
        for column in _COLUMNS:
            parser.add_argument(f"--{column}-column", help=f"the log's column (default: {column})")
        parser.add_argument(
            "--status",
            action="append",
            default=[],
            metavar="WORD=STATUS",
            help="the meaning of a word of the log, such as done=DELIVERED; may be repeated",
        )
        parser.add_argument(
            "--time-format",
            default="",
            help="of the log, such as 'dd.MM.yyyy HH:mm:ss' (default: ISO 8601)",
        )
        parser.add_argument(
            "--output", help="folder of a file with all compared rows (default: none)"
        )
        parser.add_argument(
            "--format", default="csv", choices=["csv", "parquet"], help="default: csv"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            requested = dict(_requested(options))
            _validate(requested)
            run = run_step(Step.COMPARE, options=requested, write=self.stdout.write)
        except CommandError as error:
            if error.returncode == FAILED:
                error.returncode = NOT_COMPARED
            raise
        if differences := _differences(run.result):
            raise CommandError(f"{run}: the brokers differ: {differences}.", returncode=DIFFERENT)


def _requested(options: Options) -> Iterator[tuple[str, Any]]:
    """Yield the options of the step; raise CommandError."""
    theirs = options["theirs"]
    if not urlsplit(theirs).scheme:
        theirs = str(Path(theirs).resolve())
        if not Path(theirs).is_file():
            raise CommandError(f"There is no file {theirs}.")
    yield from (("theirs", theirs), ("key", options["key"]), ("format", options["format"]))
    columns = {column: options[f"{column}_column"] for column in _COLUMNS}
    yield "columns", {column: name for column, name in columns.items() if name}
    yield "statuses", dict(map(_translation, options["status"]))
    yield "time_format", options["time_format"]
    yield from ((name, options[name].isoformat()) for name in ("since", "until") if options[name])
    if options["subscription"]:
        subscription = find_subscription(options["subscription"])
        yield "subscription", f"{subscription.subscriber.name}/{subscription.name}"
        yield "subscription_id", subscription.pk
        yield "event_types", [subscription.event_type.name]
    else:
        subscribed = Subscription.objects.order_by("event_type__name")
        yield "event_types", list(subscribed.values_list("event_type__name", flat=True).distinct())
    if options["output"]:
        yield "to", str(Path(options["output"]).resolve())


def _translation(text: str) -> tuple[str, str]:
    word, is_pair, status = text.rpartition("=")
    if not is_pair:
        raise CommandError(
            f"--status {text}: write WORD=STATUS, such as {text}=DELIVERED.",
            returncode=NOT_COMPARED,
        )
    return word, status


def _validate(requested: Options) -> None:
    # Imported here because it loads the Parquet libraries.
    from delivery.history.steps.compare_request import ComparisonError, read_comparison_request
    from subscriptions.filters import FilterError

    try:
        read_comparison_request(requested)  # type: ignore[arg-type]
    except (ComparisonError, FilterError) as error:
        raise CommandError(str(error)) from None


def _differences(result: dict[str, Any]) -> str:
    """Return the counts of the differences as text, empty if there are none."""
    names = {
        "only_there": "only there",
        "only_here": "only here",
        "other_status": "in another status",
        "other_order": "in another order",
    }
    return ", ".join(f"{result[name]:,} {words}" for name, words in names.items() if result[name])
