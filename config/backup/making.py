"""Making a back-up: everything is read in a snapshot of the database, while Inturn runs."""

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
from psycopg.conninfo import make_conninfo

from config.backup.archive import LEDGER_ROWS
from config.backup.manifest import (
    DATABASE,
    FORMAT,
    KEYS,
    LEDGER,
    BackupError,
    Manifest,
    describe_files,
    sync_to_disk,
    write_manifest,
)
from config.embedded.programs import find_programs
from config.env import Environment
from config.up import processes
from config.version import version
from delivery.database.connections import connection_parameters
from delivery.history.postgres.window import Snapshot, open_snapshot

Say = Callable[[str], None]

# A table is locked by others for moments only.
LOCK_WAIT = "60s"
# Each table is read at most once, in index-only scans or small.
COUNTS = {
    "waiting": "SELECT count(*) FROM delivery_waiting",
    "in_doubt": "SELECT count(*) FROM delivery_settled WHERE status = 'IN_DOUBT'",
    "archive_files": "SELECT count(*) FROM delivery_archivefile",
    "last_message": "SELECT coalesce(max(id), 0) FROM delivery_message",
}


def make_backup(target: Path, environment: Environment, *, say: Say) -> Manifest:
    """Make a back-up in a new folder, which exists only once it is complete; raises BackupError."""
    if target.exists():
        raise BackupError(
            f"{target} exists: give a folder that does not, such as {target}/2026-01-31"
        )
    unfinished = target.with_name(f"{target.name}.unfinished")
    try:
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(parents=True, mode=0o700)
        manifest = _write(unfinished, environment, say=say)
        unfinished.rename(target)
        sync_to_disk(target.parent)
    except psycopg.Error as error:
        raise BackupError(f"the database cannot be read: {' '.join(str(error).split())}") from error
    except OSError as error:
        raise BackupError(f"{target} cannot be written ({error.strerror or error})") from error
    return manifest


def _write(folder: Path, environment: Environment, *, say: Say) -> Manifest:
    _write_keys(folder / KEYS, environment)
    parameters = connection_parameters()
    with open_snapshot(make_conninfo(**parameters)) as seen:
        say("reading the archive's ledger")
        with (
            (folder / LEDGER).open("wb") as file,
            seen.connection.cursor().copy(LEDGER_ROWS) as rows,
        ):
            for block in rows:
                file.write(block)
        say("dumping the database")
        _dump(folder / DATABASE, parameters, seen)
        say("computing hashes")
        manifest = _manifest(seen, folder)
    write_manifest(folder, manifest)
    return manifest


def _write_keys(path: Path, environment: Environment) -> None:
    path.touch(mode=0o600)
    keys = {"secret_key": environment.secret_key, "encryption_keys": environment.encryption_keys}
    path.write_text(json.dumps(keys))


def _dump(path: Path, parameters: dict[str, Any], seen: Snapshot) -> None:
    # The password is not for the list of processes.
    password = str(parameters.get("password") or "")
    rest = make_conninfo(
        **{name: value for name, value in parameters.items() if name != "password"}
    )
    done = subprocess.run(
        [
            *(find_programs().path("pg_dump"), "--format=custom", f"--snapshot={seen.name}"),
            *("--no-owner", "--no-privileges", f"--lock-wait-timeout={LOCK_WAIT}"),
            *(f"--file={path}", f"--dbname={rest}"),
        ],
        env=processes.environment(postgres=False) | ({"PGPASSWORD": password} if password else {}),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise BackupError(f"pg_dump failed: {' '.join(done.stderr.split())}")
    path.chmod(0o600)


def _manifest(seen: Snapshot, folder: Path) -> Manifest:
    def value(query: str) -> Any:
        row = seen.connection.execute(query).fetchone()
        assert row is not None
        return row[0]

    migrations = "SELECT array_agg(app || '.' || name ORDER BY app, name) FROM django_migrations"
    return Manifest(
        format=FORMAT,
        version=version(),
        made_at=value("SELECT now()").isoformat(),
        postgresql=int(value("SHOW server_version_num")) // 10_000,
        # The upper half of a transaction's number.
        epoch=int(value("SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint >> 32")),
        migrations=value(migrations),
        counts={name: int(value(query)) for name, query in COUNTS.items()},
        files=describe_files(folder),
    )


def size_of(folder: Path) -> int:
    return sum(entry.stat().st_size for entry in os.scandir(folder))
