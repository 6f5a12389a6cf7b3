"""`support-bundle`: write a file with the facts needed for remote help."""

import io
import json
import tarfile
import time
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from config import support_bundle

READ_ME = """\
Made by `manage.py support-bundle`. It has versions, settings, the state and statistics of the
database, lanes, counts, and the ends of the logs. It has no messages, no headers, no keys, no
passwords; it names hosts, URLs of endpoints (in logs) and tables. Read it before you send it.
"""


class Command(BaseCommand):
    help = (
        "Write versions, settings, statistics and logs into one file, without payloads and secrets."
    )
    # It has to work where checks would fail.
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--to", type=Path, metavar="FILE", help="default: in INTURN_HOME")

    def handle(self, *args: Any, **options: Any) -> None:
        name = f"inturn-support-{timezone.now():%Y%m%d-%H%M%S}"
        target: Path = options["to"] or settings.ENVIRONMENT.home / f"{name}.tar.gz"
        try:
            target.touch(mode=0o600, exist_ok=False)
            with target.open("wb") as file, tarfile.open(fileobj=file, mode="w:gz") as bundle:
                self._write(Bundle(bundle, name))
        except OSError as error:
            raise CommandError(
                f"{target} cannot be written ({error.strerror}): give another with --to"
            ) from error
        self.stdout.write(f"{target}: read it before you send it")

    def _write(self, bundle: "Bundle") -> None:
        bundle.add_part("README.txt", READ_ME)
        bundle.add_part("about.json", support_bundle.about())
        bundle.add_part("settings.txt", support_bundle.shown_settings())
        for name, rows in support_bundle.database(self._say):
            bundle.add_part(f"database/{name}.json", rows)
        for name, text in support_bundle.logs():
            bundle.add_part(f"logs/{name}", text)

    def _say(self, line: str) -> None:
        self.stderr.write(f"inturn: {line}")


class Bundle:
    """An archive for texts and values, all in one folder."""

    def __init__(self, archive: tarfile.TarFile, folder: str) -> None:
        self._archive = archive
        self._folder = folder

    def add_part(self, name: str, content: Any) -> None:
        text = (
            content
            if isinstance(content, str) and not name.endswith(".json")
            else _as_json(content)
        )
        encoded = text.encode()
        member = tarfile.TarInfo(f"{self._folder}/{name}")
        member.size, member.mtime, member.mode = len(encoded), int(time.time()), 0o600
        self._archive.addfile(member, io.BytesIO(encoded))


def _as_json(content: Any) -> str:
    return json.dumps(content, indent=1, default=str)
