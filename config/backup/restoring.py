"""Restoring a back-up into an empty home. `config/backup/README.md` has the crash windows."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from urllib.parse import unquote, urlsplit

from config.backup import restore_marker
from config.backup.archive import archive_warnings
from config.backup.manifest import (
    DATABASE,
    KEYS,
    LEDGER,
    BackupError,
    Manifest,
    read_manifest,
    sync_to_disk,
)
from config.embedded.cluster import clusters_of
from config.embedded.postgres import Server
from config.embedded.programs import find_programs
from config.env import CHECKOUT, Environment
from config.up import processes
from config.up.child import MANAGE
from config.up.preflight import single_instance

JOBS = 2
ENDING = ((signal.SIGQUIT, 5), (signal.SIGKILL, 5))
OURS = ("delivery", "subscriptions")


@dataclass(frozen=True, slots=True)
class Restore:
    """A restore; `run_restore` may be repeated after an interruption at any point."""

    source: Path
    environment: Environment
    say: Callable[[str], None]
    nothing_sent_since: bool = False

    def run_restore(self) -> Manifest:
        """Restore and mark the database; raises BackupError, PostgresError or CannotStartError."""
        home = self.environment.home
        self.say(f"checking {self.source}")
        manifest = read_manifest(self.source)
        _require_known(manifest)
        with single_instance(home):
            self._require_empty()
            restore_marker.begin_restore(home, self.source)
            self._empty()
            self._write_keys()
            self._restore(manifest)
            restore_marker.end_restore(home)
        for warning in archive_warnings(self.source / LEDGER, self.environment.history_url):
            self.say(warning)
        return manifest

    def _require_empty(self) -> None:
        home = self.environment.home
        found = [cluster.folder for cluster in clusters_of(home) if cluster.data.exists()]
        if found and not restore_marker.is_unfinished(home):
            raise BackupError(
                f"{home} is not empty: it has the database {found[0]}. Set INTURN_HOME to a new "
                "folder, or move that one away"
            )

    def _empty(self) -> None:
        """Delete the database of an interrupted restore, whose server is just ending."""
        for cluster in clusters_of(self.environment.home):
            processes.end_processes(partial(processes.working_in, cluster.data), ENDING)
            shutil.rmtree(cluster.folder)

    def _write_keys(self) -> None:
        keys = json.loads((self.source / KEYS).read_text())
        given = set(self.environment.encryption_keys)
        is_given = any(
            os.environ.get(name)
            for name in ("INTURN_ENCRYPTION_KEYS", "INTURN_ENCRYPTION_KEYS_FILE")
        )
        if is_given and not set(keys["encryption_keys"]) <= given:
            raise BackupError(
                "INTURN_ENCRYPTION_KEYS lacks a key of the back-up, and its secrets could not be "
                "read: add it, or unset the setting to use the back-up's keys"
            )
        home = self.environment.home
        _replace(home / "secret-key", keys["secret_key"])
        _replace(home / "encryption-keys", " ".join(keys["encryption_keys"]))

    def _restore(self, manifest: Manifest) -> None:
        server = Server(self.environment.home)
        try:
            server.start()
            server.stop()
            # The transactions then have larger numbers than all in the back-up.
            server.set_epoch(manifest.epoch + 1)
            url = server.start()
            self.say("restoring the database")
            _load(self.source / DATABASE, url)
            self.say("preparing it")
            self._manage("prepare", url)
            self.say("marking deliveries")
            marking = ["--made-at", manifest.made_at]
            self._manage("mark_restored", url, *marking, *self._flags())
        finally:
            server.stop()

    def _flags(self) -> list[str]:
        return ["--nothing-sent-since"] if self.nothing_sent_since else []

    def _manage(self, command: str, url: str, *arguments: str) -> None:
        done = subprocess.run(
            [sys.executable, MANAGE, command, *arguments],
            env=processes.environment(postgres=False) | {"DATABASE_URL": url},
            stdin=subprocess.DEVNULL,
            stdout=sys.stderr,
            check=False,
        )
        if done.returncode != 0:
            raise BackupError(
                f"`{command}` failed, see above; correct that, and repeat the restore"
            )


def _require_known(manifest: Manifest) -> None:
    """Refuse a back-up of a newer version, before anything is written."""
    for app, _, name in (migration.partition(".") for migration in manifest.migrations):
        if app in OURS and not (CHECKOUT / app / "migrations" / f"{name}.py").exists():
            raise BackupError(
                f"the back-up is of Inturn {manifest.version}, with the migration {app}.{name}, "
                "which this version does not have: restore it with the version that made it"
            )


def _load(dump: Path, url: str) -> None:
    parts = urlsplit(url)
    password = unquote(parts.password or "")
    address = parts._replace(netloc=parts.netloc.replace(f":{parts.password}@", "@", 1)).geturl()
    done = subprocess.run(
        [
            *(find_programs().path("pg_restore"), f"--jobs={JOBS}", "--exit-on-error"),
            *("--no-owner", "--no-privileges", f"--dbname={address}", str(dump)),
        ],
        env=processes.environment(postgres=False) | {"PGPASSWORD": password},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise BackupError(f"pg_restore failed: {' '.join(done.stderr.split())}")


def _replace(path: Path, text: str) -> None:
    draft = path.with_name(f"{path.name}.restored")
    draft.unlink(missing_ok=True)
    draft.touch(mode=0o600)
    draft.write_text(text)
    sync_to_disk(draft)
    draft.replace(path)
    sync_to_disk(path.parent)
