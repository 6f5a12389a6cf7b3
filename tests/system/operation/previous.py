"""The code of the last commit whose migrations are not this checkout's, in a folder of its own.

Before the first release that is the commit before the newest migration, if one was added since the
migrations were squashed; the first upgrade that customers make will be compared with a tag.
"""

import subprocess
from collections.abc import Set
from functools import cache
from pathlib import Path

from django.db.migrations.loader import MigrationLoader

from config.env import CHECKOUT

MIGRATIONS = ("delivery/migrations", "subscriptions/migrations")
# The first migration of each. A squash writes them anew, and an earlier database cannot be
# migrated.
BASES = tuple(f"{folder}/0001_initial.py" for folder in MIGRATIONS)
UNREACHED = "the git history does not reach back to the commit before the newest migration"
SQUASHED = "the migrations were squashed, and none was added since"


def missing() -> str:
    """Return why the code of the version before cannot run here; empty if it can."""
    return _search()[1]


def unpack_previous(folder: Path) -> None:
    """Write the files of that commit into the folder."""
    commit, why = _search()
    assert commit, why
    done = subprocess.run(
        ["git", "archive", "--format=tar", commit], cwd=CHECKOUT, capture_output=True, check=True
    )
    # Python's own reader of such files warns without an argument that Python 3.11.2 does not know.
    subprocess.run(["tar", "--extract", "--directory", folder], input=done.stdout, check=True)


@cache
def _search() -> tuple[str, str]:
    """Return the commit and an empty reason, or no commit and the reason."""
    here = {
        f"{folder}/{path.name}"
        for folder in MIGRATIONS
        for path in (CHECKOUT / folder).iterdir()
        # Not the folder of compiled modules.
        if path.is_file()
    }
    bases = _git("hash-object", *BASES).split()
    changes = _git("log", "--format=%H", "--", *MIGRATIONS).split()
    for commit in ["HEAD", *(f"{change}^" for change in changes)]:
        found = _files(commit)
        if not found:  # There is no history, or a shallow clone ends here.
            break
        if [found.get(base) for base in BASES] != bases:
            return "", SQUASHED
        if found.keys() < here and _is_complete(found.keys()):
            return commit, ""
    return "", UNREACHED


def _files(commit: str) -> dict[str, str]:
    """Return the files of the commit's migrations, each with git's hash of it."""
    listed = _git("ls-tree", commit, *(f"{folder}/" for folder in MIGRATIONS))
    rows = (line.partition("\t") for line in listed.splitlines())
    return {path: about.split()[2] for about, _, path in rows}


def _is_complete(found: Set[str]) -> bool:
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


def _git(*arguments: str) -> str:
    """Return git's answer; empty if there is none, or no git."""
    try:
        done = subprocess.run(
            ["git", *arguments], cwd=CHECKOUT, capture_output=True, text=True, check=False
        )
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
