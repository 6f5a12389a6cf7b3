"""The manifest of a back-up: a description, and the hashes of the files."""

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path

DATABASE, KEYS, LEDGER, MANIFEST = (
    "database.dump",
    "keys.json",
    "archive-ledger.csv",
    "manifest.json",
)
FORMAT = 1


class BackupError(RuntimeError):
    """A back-up cannot be made or used; the message is for the user."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """`made_at` is the time of the snapshot, `epoch` that of its transactions."""

    format: int
    version: str
    made_at: str
    postgresql: int
    epoch: int
    migrations: list[str]
    counts: Mapping[str, int]
    files: Mapping[str, Mapping[str, str | int]]

    @property
    def moment(self) -> datetime:
        return datetime.fromisoformat(self.made_at)


def describe_files(folder: Path) -> dict[str, dict[str, str | int]]:
    """Return size and hash of each file; syncs them."""
    found: dict[str, dict[str, str | int]] = {}
    for path in sorted(folder.iterdir()):
        with path.open("rb") as file:
            os.fsync(file.fileno())
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        found[path.name] = {"bytes": path.stat().st_size, "sha256": digest}
    return found


def write_manifest(folder: Path, manifest: Manifest) -> None:
    path = folder / MANIFEST
    path.write_text(json.dumps(asdict(manifest), indent=1) + "\n")
    sync_to_disk(path)
    sync_to_disk(folder)


def read_manifest(folder: Path) -> Manifest:
    """Return the manifest of a complete back-up with unchanged files; raises BackupError."""
    try:
        content = json.loads((folder / MANIFEST).read_text())
    except OSError as error:
        raise BackupError(
            f"{folder} has no readable {MANIFEST} ({error.strerror}): "
            "give the folder of a complete back-up"
        ) from error
    except ValueError as error:
        raise BackupError(
            f"{folder / MANIFEST} is damaged: take another copy of the back-up"
        ) from error
    if content.get("format") != FORMAT:
        raise BackupError(
            f"{folder} has a format that this version does not know: "
            f"use Inturn {content.get('version')}"
        )
    manifest = Manifest(**content)
    for name, expected in manifest.files.items():
        path = folder / name
        if not path.exists():
            raise BackupError(f"{path} is missing: take another copy of the back-up")
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        if digest != expected["sha256"]:
            raise BackupError(
                f"{path} was changed or is damaged (another SHA-256): "
                "take another copy of the back-up"
            )
    return manifest


def sync_to_disk(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
