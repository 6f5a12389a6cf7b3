"""A started product: all processes of `up`, in a separate home."""

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.conf import settings

from tests.bench.children import child
from tests.bench.web import free_port


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """It reported ready `ready_seconds` after the start."""

    pid: int
    port: int
    ready_seconds: float


@contextmanager
def started(home: Path, **given: str) -> Iterator[Started]:
    """Run `up` with these variables until leaving.

    Without DATABASE_URL it starts a database in the home.
    """
    port = free_port()
    changed = {
        "INTURN_HOME": str(home),
        "PORT": str(port),
        "DATABASE_URL": "",
        "HISTORY_URL": str(home / "archive"),
    } | given
    began = time.monotonic()
    with (
        (home / "up.log").open("wb") as log,
        child(
            str(settings.BASE_DIR / "manage.py"),
            "up",
            changed=changed,
            stdout=subprocess.PIPE,
            stderr=log,
        ) as process,
    ):
        assert process.stdout is not None
        with process.stdout:
            if not process.stdout.readline().startswith(b"ready"):
                print((home / "up.log").read_text(), file=sys.stderr)
                raise RuntimeError("the product of the benchmark does not start")
            yield Started(pid=process.pid, port=port, ready_seconds=time.monotonic() - began)


@contextmanager
def started_beside(**changed: str) -> Iterator[Started]:
    """Run `up` on the database of the benchmark, with these variables."""
    ours = settings.ENVIRONMENT
    # Secrets in the database are encrypted with these keys.
    given = {
        "DATABASE_URL": ours.database_url,
        "INTURN_ENCRYPTION_KEYS": " ".join(ours.encryption_keys),
    } | changed
    with home() as folder, started(folder, **given) as product:
        yield product


@contextmanager
def home() -> Iterator[Path]:
    """Yield a folder for an installation; remove it on leaving."""
    made: Any = tempfile.TemporaryDirectory(prefix="inturn-bench-", ignore_cleanup_errors=True)
    with made as name:
        folder = Path(name)
        # If PostgreSQL runs as `nobody`, it needs access to the folder.
        folder.chmod(0o711)
        yield folder
