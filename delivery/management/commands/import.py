"""`import`: take over the configuration and the messages of another system, with a report."""

import os
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from delivery.configuration.document.document_json import document_text
from delivery.configuration.document.secrets import variable_of
from delivery.management.import_messages import add_message_commands
from delivery.management.importing.event_queue import import_event_queue
from delivery.management.importing.import_result import Imported, SourceError
from delivery.management.importing.source import read_source
from delivery.management.importing.teamforge import import_teamforge
from delivery.management.importing.webmethods import import_webmethods
from delivery.management.importing.workfront import import_workfront
from delivery.management.refusing_parser import RefusingParser, refuse_wrong_options

IMPORTERS: dict[str, Callable[[str], Imported]] = {
    "teamforge": import_teamforge,
    "workfront": import_workfront,
    "eventqueue": import_event_queue,
    "webmethods": import_webmethods,
}


class Command(BaseCommand):
    help = (
        "Take over the configuration or the messages of another system, with a report in parts: "
        "taken over, taken over differently, impossible, and the fields that were not read. "
        "`teamforge`, `workfront`, `eventqueue` and `webmethods` write a file for "
        "`configuration plan` to standard output and change nothing. "
        "`backlog` and `delivered` read messages; without --apply they change nothing. "
        "Exit code 0: done, or nothing to do; 2: there is something to --apply; "
        "1: refused, and nothing was changed."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        refuse_wrong_options(parser)
        commands = parser.add_subparsers(
            metavar=f"{'|'.join(IMPORTERS)}|backlog|delivered|reserve",
            required=True,
            parser_class=RefusingParser,
        )
        for system in IMPORTERS:
            importing = commands.add_parser(
                system, help="convert its configuration into a configuration file"
            )
            importing.add_argument("source", type=Path, help="the file that the system exported")
            importing.add_argument(
                "--shadow",
                action="store_true",
                help=(
                    "write ACTIVE and HELD subscriptions as SHADOW: "
                    "their matches are recorded, and nothing is sent"
                ),
            )
            importing.add_argument(
                "--ignore",
                action="append",
                default=[],
                metavar="NAME",
                help=(
                    "a column, key or property that the report names as not read, and that is not "
                    "needed; may be repeated. Without it nothing is written"
                ),
            )
            importing.add_argument(
                "--secrets",
                type=Path,
                help="a new file for the values of secrets, as lines of a shell: NAME=value",
            )
            importing.set_defaults(system=system)
        add_message_commands(commands)

    def handle(self, *args: Any, system: str = "", **options: Any) -> None:
        if system:
            self._import_configuration(system, options)
            return
        try:
            code = options["act"](options, self.stdout.write)
        except OSError as error:
            raise CommandError(f"{options['file']} cannot be read: {error.strerror}.") from error
        if code:
            self.stdout.flush()
            raise SystemExit(code)

    def _import_configuration(self, system: str, options: dict[str, Any]) -> None:
        try:
            imported = IMPORTERS[system](read_source(options["source"]))
        except SourceError as error:
            raise CommandError(str(error)) from error
        ignored = options["ignore"]
        self.stderr.write(imported.report(ignored=ignored))
        if unread := imported.fields.unread(ignored):
            raise CommandError(_refused(unread))
        if options["shadow"]:
            imported.shadow()
        if options["secrets"] is not None:
            _write_secrets(options["secrets"], imported.secrets)
        self.stdout.write(document_text(imported.document()), ending="")


def _refused(unread: Sequence[str]) -> str:
    return (
        f"Nothing was written, because fields with values were not read: {'; '.join(unread[:10])}"
        f"{' …' if len(unread) > 10 else ''}. Rename those that are only spelled differently, and "
        "give --ignore NAME for each that is not needed."
    )


def _write_secrets(path: Path, secrets: dict[str, str]) -> None:
    """Write a file readable by the owner only; refuse to overwrite an existing file."""
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.writelines(
                f"{variable_of(name)}={shlex.quote(value)}\n"
                for name, value in sorted(secrets.items())
            )
    except OSError as error:
        raise CommandError(f"{path} cannot be written: {error.strerror}.") from error
