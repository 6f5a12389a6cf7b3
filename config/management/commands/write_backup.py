"""`write_backup`: the part of `backup` with a running database."""

from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from config.backup.making import make_backup, size_of
from config.backup.manifest import BackupError


class Command(BaseCommand):
    help = "Write a back-up of the running database; `backup` also starts an embedded one."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--to", type=Path, required=True, metavar="DIR", help="a folder that does not exist"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        target: Path = options["to"].expanduser().absolute()
        try:
            manifest = make_backup(target, settings.ENVIRONMENT, say=self._say)
        except BackupError as error:
            raise CommandError(str(error)) from error
        waiting = manifest.counts["waiting"]
        self.stdout.write(
            f"{target}: {size_of(target):,} bytes, the state of {manifest.made_at}, with "
            f"{waiting:,} open deliveries. The archive is not part of it"
        )

    def _say(self, line: str) -> None:
        self.stderr.write(f"inturn: {line}")
