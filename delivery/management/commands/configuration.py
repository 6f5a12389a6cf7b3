"""`configuration`: export the configuration as a file, plan and apply a file, show drift."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from delivery.configuration.applying import (
    apply_document,
    checked_document,
    drift_of,
    plan_document,
)
from delivery.configuration.archive_effect import MOST_DAYS, archive_lines, effect_options
from delivery.configuration.document.apply import PlanChangedError
from delivery.configuration.document.document import NAMES, RefusedDocumentError
from delivery.configuration.document.document_json import document_text, parse_document
from delivery.configuration.document.export import export_configuration
from delivery.configuration.document.plan import ConfigurationRequest, Plan
from delivery.configuration.document.secrets import secret_of_machine
from delivery.configuration.document.warnings import plan_warnings
from delivery.configuration.effect import effects_of
from delivery.configuration.words import effect_lines, plan_lines, plan_summary
from delivery.management.refusing_parser import RefusingParser, refuse_wrong_options
from delivery.models import Step

ACTOR = "manage.py configuration"
HAS_CHANGES = 2
SHOWN_FAULTS = 200

Options = dict[str, Any]
Write = Callable[[str], object]


class Command(BaseCommand):
    help = (
        "Write the configuration as a file, plan what a file would change, apply that plan, "
        "or compare. Exit code 0: done, or nothing to do; 2: there are changes; "
        "1: refused, and nothing was changed."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        refuse_wrong_options(parser)
        commands = parser.add_subparsers(
            metavar="export|plan|apply|drift", required=True, parser_class=RefusingParser
        )
        exporting = commands.add_parser("export", help="write the configuration to standard output")
        exporting.add_argument(
            "--only", nargs="+", choices=NAMES, default=(), help="of these lists only"
        )
        exporting.set_defaults(act=_export)
        planning = commands.add_parser(
            "plan", help="report the changes that a file would make; changes nothing"
        )
        _add_file(planning)
        planning.add_argument(
            "--days",
            type=int,
            help="also try the archived messages of the last DAYS days, on Spark",
        )
        planning.set_defaults(act=_plan)
        applying = commands.add_parser("apply", help="apply a plan, if it still holds")
        _add_file(applying)
        applying.add_argument(
            "--plan", dest="digest", required=True, help="the digest that `plan` ended with"
        )
        applying.set_defaults(act=_apply)
        comparing = commands.add_parser(
            "drift", help="say how the installation differs from a file"
        )
        comparing.add_argument("file", help="- is standard input")
        comparing.set_defaults(act=_drift)

    def handle(self, *args: Any, act: Callable[[Options, Write], int], **options: Any) -> None:
        try:
            code = act(options, self.stdout.write)
        except RefusedDocumentError as error:
            lines = [f"  {fault}" for fault in error.faults[:SHOWN_FAULTS]]
            more = len(error.faults) - len(lines)
            faults = "\n".join([*lines, *([f"  … and {more:,} more"] if more else [])])
            raise CommandError(
                f"The file is refused, and nothing was changed:\n{faults}"
            ) from error
        if code:
            self.stdout.flush()
            raise SystemExit(code)


def _add_file(parser: CommandParser) -> None:
    parser.add_argument("file", help="- is standard input")
    parser.add_argument(
        "--prune",
        action="store_true",
        help="delete objects that the file's lists do not have, unless others need them",
    )


def _export(options: Options, write: Write) -> int:
    write(document_text(export_configuration(only=options["only"])).removesuffix("\n"))
    return 0


def _plan(options: Options, write: Write) -> int:
    planned = plan_document(_configuration_request(options))
    for line in plan_lines(planned):
        write(line)
    for warning in plan_warnings(planned):
        write(f"warning: {warning}")
    for line in effect_lines(effects_of(planned)):
        write(line)
    if options["days"] is not None:
        _try_archive(planned, options["days"], write)
    write(f"digest {planned.digest}")
    return HAS_CHANGES if planned.changes else 0


def _try_archive(planned: Plan, days: int, write: Write) -> None:
    # Here, because it brings Spark.
    from delivery.management.history_running import run_step

    if not 1 <= days <= MOST_DAYS:
        raise CommandError(f"--days must be from 1 to {MOST_DAYS:,}.")
    options = effect_options(planned, days=days, now=timezone.now())
    if options["changes"]:
        run = run_step(Step.EFFECT, options=options, write=lambda _: None)
        for line in archive_lines(run.result, days=days):
            write(line)


def _apply(options: Options, write: Write) -> int:
    try:
        done = apply_document(
            _configuration_request(options), digest=options["digest"], actor=ACTOR
        )
    except PlanChangedError:
        raise CommandError(
            "Nothing was changed: this is not the plan of that digest, "
            "for the file or the installation has changed since. Plan again."
        ) from None
    write(f"Applied: {plan_summary(done)}.")
    return 0


def _drift(options: Options, write: Write) -> int:
    found = drift_of(_configuration_request(options | {"prune": True}))
    for line in plan_lines(found):
        write(line)
    return HAS_CHANGES if found.changes else 0


def _read(place: str) -> bytes:
    try:
        return sys.stdin.buffer.read() if place == "-" else Path(place).read_bytes()
    except OSError as error:
        raise CommandError(f"{place} cannot be read: {error.strerror}.") from None


def _configuration_request(options: Options) -> ConfigurationRequest:
    return checked_document(
        parse_document(_read(options["file"])), lookup=secret_of_machine, prune=options["prune"]
    )
