"""The code of the last commit whose migrations are not this checkout's, in a folder of its own.

Before the first release that is the commit before the newest migration; the first upgrade that
customers make will be compared with a tag.
"""

import io
import subprocess
import tarfile
from functools import cache
from pathlib import Path

from django.db.migrations.loader import MigrationLoader

from config.env import CHECKOUT

MIGRATIONS = ("delivery/migrations", "subscriptions/migrations")


@cache
def previous_commit() -> str | None:
    """Return the commit; None if the history does not reach so far."""
    if not _git("rev-parse", "--verify", "--quiet", "HEAD"):
        return None
    here = {
        f"{folder}/{path.name}" for folder in MIGRATIONS for path in (CHECKOUT / folder).glob("*")
    }
    changes = _git("log", "--format=%H", "--", *MIGRATIONS).split()
    for commit in ["HEAD", *(f"{change}^" for change in changes)]:
        listed = _git("ls-tree", "--name-only", commit, *(f"{folder}/" for folder in MIGRATIONS))
        if not listed:  # A shallow clone ends here.
            return None
        found = set(listed.split())
        if found < here and _is_complete(found):
            return commit
    return None


def _is_complete(found: set[str]) -> bool:
    """Return whether these migrations have all on which they depend today.

    Of two branches that are merged, one may have its migrations put after the other's.
    """
    migrations = MigrationLoader(None, ignore_no_migrations=True).disk_migrations
    return all(
        f"{app}/migrations/{name}.py" in found
        for key, migration in migrations.items()
        if "{}/migrations/{}.py".format(*key) in found
        for app, name in migration.dependencies
        if f"{app}/migrations" in MIGRATIONS
    )


def missing() -> str:
    """Return why the code of the version before cannot run here; empty if it can."""
    if previous_commit() is not None:
        return ""
    return "the git history does not reach back to the commit before the newest migration"


def unpack_previous(folder: Path) -> None:
    """Write the files of that commit into the folder."""
    commit = previous_commit()
    assert commit is not None
    done = subprocess.run(
        ["git", "archive", "--format=tar", commit], cwd=CHECKOUT, capture_output=True, check=True
    )
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        archive.extractall(folder, filter="data")


def _git(*arguments: str) -> str:
    """Return git's answer; empty if there is none, or no git."""
    try:
        done = subprocess.run(
            ["git", *arguments], cwd=CHECKOUT, capture_output=True, text=True, check=False
        )
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
