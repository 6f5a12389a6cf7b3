"""`history report`: the settlements of an interval in a file, for auditors."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser

from delivery.management.history_replay import parse_moment
from delivery.management.history_running import run_step
from delivery.models import Step
from delivery.states import OPEN, Status

SETTLED = [status.value for status in Status if status not in OPEN]
_PASSED_ON = (
    "subscriber",
    "subscription",
    "event_type",
    "status",
    "filter",
    "format",
    "with_bodies",
)


def add_report_arguments(parser: CommandParser) -> None:
    when = "UTC, such as 2026-11-01 or 2026-11-01T10:15"
    parser.add_argument(
        "--since", required=True, type=parse_moment, help=f"settled at this time or later; {when}"
    )
    parser.add_argument(
        "--until", required=True, type=parse_moment, help="settled before this time"
    )
    parser.add_argument("--subscriber", help="only this one's")
    parser.add_argument("--subscription", help="only this one's: an id, or a name")
    parser.add_argument("--event-type", help="only of this one")
    parser.add_argument(
        "--status", action="append", choices=SETTLED, help="only these; may be repeated"
    )
    parser.add_argument("--filter", help="only of messages that this is true of")
    parser.add_argument("--format", default="csv", choices=["csv", "parquet"], help="default: csv")
    parser.add_argument(
        "--with-bodies", action="store_true", help="with headers and bodies of the messages"
    )
    parser.add_argument("--to", help="folder of the file (default: reports, in INTURN_HOME)")


def report_now(options: dict[str, Any], *, write: Callable[[str], object]) -> None:
    """Write the file, and print the path; raise CommandError."""
    # Imported here because it loads the Parquet libraries.
    from delivery.history.steps.report_request import ReportError, read_report_request
    from subscriptions.filters import FilterError

    parameters = {name: options[name] for name in _PASSED_ON if options[name]}
    parameters |= {name: options[name].isoformat() for name in ("since", "until")}
    if options["to"]:
        parameters["to"] = str(Path(options["to"]).resolve())
    try:
        read_report_request(parameters)  # type: ignore[arg-type]
    except (ReportError, FilterError) as error:
        raise CommandError(str(error)) from None
    run_step(Step.REPORT, options=parameters, write=write)
