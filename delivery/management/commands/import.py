"""`import`: convert another system's configuration into a configuration file, with a report."""

import os
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from delivery.importing.event_queue import import_event_queue
from delivery.importing.imported import Imported, SourceError
from delivery.importing.teamforge import import_teamforge
from delivery.importing.webmethods import import_webmethods
from delivery.importing.workfront import import_workfront
from subscriptions.configuration.document import written

IMPORTERS: dict[str, Callable[[str], Imported]] = {
    "teamforge": import_teamforge,
    "workfront": import_workfront,
    "eventqueue": import_event_queue,
    "webmethods": import_webmethods,
}


class Command(BaseCommand):
    help = (
        "Write another system's configuration as a file for `configuration plan` to standard output, and a report in "
        "three parts to standard error: taken over, taken over differently, impossible. Nothing is changed."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("system", choices=sorted(IMPORTERS))
        parser.add_argument("source", type=Path, help="the file that the system exported")
        parser.add_argument(
            "--secrets",
            type=Path,
            help="a new file for the values of secrets, as lines of a shell: NAME=value",
        )

    def handle(self, *args: Any, system: str, source: Path, **options: Any) -> None:
        try:
            imported = IMPORTERS[system](source.read_text())
        except (OSError, UnicodeError) as error:
            raise CommandError(f"{source} cannot be read: {error}.") from error
        except SourceError as error:
            raise CommandError(str(error)) from error
        if options["secrets"] is not None:
            _write_secrets(options["secrets"], imported.secrets)
        self.stderr.write(imported.report())
        self.stdout.write(written(imported.document()), ending="")


def _write_secrets(path: Path, secrets: dict[str, str]) -> None:
    """Write a file that only its owner can read; refuse to overwrite an existing one."""
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.writelines(f"{name}={shlex.quote(value)}\n" for name, value in sorted(secrets.items()))
    except OSError as error:
        raise CommandError(f"{path} cannot be written: {error.strerror}.") from error
