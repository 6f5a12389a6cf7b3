"""`history`: run the data pipeline over the history, step by step, with a progress bar."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from delivery.management.history_archive import add_archive_arguments, show_archive
from delivery.management.history_replay import add_replay_arguments, replay_now
from delivery.management.history_report import add_report_arguments, report_now
from delivery.management.history_running import run_requested, run_step, run_steps
from delivery.management.history_runs import write_runs
from delivery.models import Step

MOST_RUNS = 1000

Options = dict[str, Any]
Write = Callable[[str], object]


@dataclass(frozen=True, slots=True)
class Subcommand:
    """A command of `history`.

    `act` gets the options added by `add`, and writes readable text. It raises CommandError.
    """

    name: str
    help: str
    add: Callable[[CommandParser], None]
    act: Callable[[Options, Write], None]


class Command(BaseCommand):
    help = (
        "Run the data pipeline over the history. Exit code 0: done; 1: it failed or was stopped; "
        "3: another is at it; 4: verify found something broken; 130: interrupted. "
        "Unfinished work does not count, and the next run continues."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        commands = parser.add_subparsers(metavar="command", required=True)
        for subcommand in SUBCOMMANDS:
            subparser = commands.add_parser(
                subcommand.name, help=subcommand.help, description=subcommand.help
            )
            subcommand.add(subparser)
            subparser.set_defaults(act=subcommand.act)

    def handle(self, *args: Any, act: Callable[[Options, Write], None], **options: Any) -> None:
        act(options, self.stdout.write)


def _nothing(_parser: CommandParser) -> None:
    """Add no options."""


def _step(step: Step) -> Callable[[Options, Write], None]:
    def act(_options: Options, write: Write) -> None:
        run_step(step, write=write)

    return act


def _add_verify(parser: CommandParser) -> None:
    parser.add_argument(
        "--whole",
        action="store_true",
        help="check the whole history, not only the new rows since the last proof",
    )


def _verify(options: Options, write: Write) -> None:
    wanted = {"whole": True} if options["whole"] else {}
    run = run_step(Step.VERIFY, options=wanted, write=write)
    if wanted and run.options != wanted:
        # A scheduled run was waiting, and this process has executed the scheduled run.
        run_step(Step.VERIFY, options=wanted, write=write)


def _all(_options: Options, write: Write) -> None:
    run_steps((Step.EXPORT, Step.ROLLUP, Step.VERIFY), write=write)


def _replay(options: Options, write: Write) -> None:
    replay_now(options, write=write)


def _report(options: Options, write: Write) -> None:
    report_now(options, write=write)


def _archive(options: Options, write: Write) -> None:
    show_archive(options, write=write)


def _add_runs(parser: CommandParser) -> None:
    parser.add_argument("-n", "--count", type=int, default=20, help="how many (default: 20)")


def _runs(options: Options, write: Write) -> None:
    if not 1 <= options["count"] <= MOST_RUNS:
        raise CommandError(f"--count must be from 1 to {MOST_RUNS}.")
    write_runs(options["count"], write=write, now=timezone.now())


def _add_run(parser: CommandParser) -> None:
    parser.add_argument("id", type=int)


def _run(options: Options, write: Write) -> None:
    run_requested(options["id"], write=write, gives_back=True)


SUBCOMMANDS = (
    Subcommand(
        "export",
        "archive settled deliveries, and compact the archive",
        _nothing,
        _step(Step.EXPORT),
    ),
    Subcommand(
        "rollup",
        "count the archive by hour, for the console's charts",
        _nothing,
        _step(Step.ROLLUP),
    ),
    Subcommand(
        "verify",
        "prove that order was kept, and nothing lost or delivered twice",
        _add_verify,
        _verify,
    ),
    Subcommand("all", "export, rollup, verify; ends at the first that fails", _nothing, _all),
    Subcommand(
        "replay", "deliver messages of the archive to a subscription", add_replay_arguments, _replay
    ),
    Subcommand(
        "report", "write settlements into one file, for auditors", add_report_arguments, _report
    ),
    Subcommand(
        "archive",
        "show which archive there is and should be; give up one that is lost",
        add_archive_arguments,
        _archive,
    ),
    Subcommand("runs", "list the newest runs", _add_runs, _runs),
    Subcommand("run", "run one that waits, as the pipeline's loop does", _add_run, _run),
)
