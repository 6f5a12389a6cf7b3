"""The virtual environment of Inturn: created, kept up to date and entered. Stdlib only.

An environment is complete only if the stamp, written after the last step, names the checkout's
present lock file.
"""

import fcntl
import hashlib
import importlib.util
import os
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from config import installers

RUNTIME_LOCK = "requirements.lock"
TEST_LOCK = "requirements-test.lock"
STAMP = "inturn-complete"
UNFINISHED = "inturn-unfinished"
ENTERED = "INTURN_ENVIRONMENT"


@dataclass(frozen=True, slots=True)
class Lock:
    """A file of hashed requirements; the tests' lock includes all of the runtime lock."""

    path: Path

    @property
    def name(self) -> str:
        return self.path.name

    def stamp(self) -> str:
        """Return the stamp of an environment with this lock installed."""
        digest = hashlib.sha256(self.path.read_bytes()).hexdigest()
        return f"{self.name} {digest}"


@dataclass(frozen=True, slots=True)
class VirtualEnvironment:
    folder: Path

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python"

    def is_current(self) -> bool:
        """Return whether this process runs in the environment."""
        return Path(sys.prefix).resolve() == self.folder.resolve()

    def stamp(self) -> str:
        try:
            return (self.folder / STAMP).read_text()
        except OSError:
            return ""

    def is_complete(self, lock: Lock) -> bool:
        """Return whether the lock is installed, and, inside the environment, Python unchanged."""
        stamp, _, tag = self.stamp().rpartition(" ")
        if self.is_current() and tag != sys.implementation.cache_tag:
            return False
        return stamp == lock.stamp() and os.access(self.python, os.X_OK)

    def is_writable(self) -> bool:
        """Return whether Inturn may create or change the environment."""
        if self.folder.exists():
            return os.access(self.folder, os.W_OK)
        parent = next(path for path in self.folder.parents if path.exists())
        return os.access(parent, os.W_OK)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the folder: if two processes start at once, one installs and the other waits."""
        # The parent may be INTURN_HOME, which is closed to other users.
        self.folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.folder.mkdir(exist_ok=True)
        held = os.open(self.folder, os.O_RDONLY)
        try:
            fcntl.flock(held, fcntl.LOCK_EX)
            yield
        finally:
            os.close(held)

    def install(self, lock: Lock) -> None:
        """Create or update the environment; discard the incomplete work of a killed process."""
        unfinished = self.folder / UNFINISHED
        if unfinished.exists() or not self._is_usable():
            self._clear()
        unfinished.touch()
        (self.folder / STAMP).unlink(missing_ok=True)
        if not self.python.exists():
            installers.make_environment(self.folder)
        installers.install_requirements(self.python, lock.path)
        tag = installers.cache_tag(self.python)
        (self.folder / STAMP).write_text(f"{lock.stamp()} {tag}")
        unfinished.unlink()

    def _is_usable(self) -> bool:
        if self.is_current() and sys.implementation.cache_tag not in self.stamp():
            return not self.stamp()
        return os.access(self.python, os.X_OK)

    def _clear(self) -> None:
        # The folder itself stays, because the lock is on it.
        for path in self.folder.iterdir():
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()


def enter_environment(checkout: str, argv: Sequence[str]) -> None:
    """Return inside a suitable environment, or replace this process.

    If an active environment of somebody else's has Django, it is used unchanged.
    """
    root = Path(checkout)
    environments = [VirtualEnvironment(root / ".venv"), VirtualEnvironment(_home(root) / ".venv")]
    inside = next((environment for environment in environments if environment.is_current()), None)
    if inside is None and _is_provided():
        return
    if inside is None and os.environ.get(ENTERED) == str(os.getpid()):
        _fail("the environment does not run as one: remove the folder .venv and start again")
    environment = _choose(environments, root, argv)
    if not environment.is_complete(_wanted_lock(environment, root, argv)):
        _complete(environment, root, argv)
    elif environment is inside:
        return
    _exec(environment)


def _choose(
    environments: list[VirtualEnvironment], root: Path, argv: Sequence[str]
) -> VirtualEnvironment:
    for environment in environments:
        if (
            environment.is_complete(_wanted_lock(environment, root, argv))
            or environment.is_writable()
        ):
            return environment
    return _fail(
        f"neither {root} nor {_home(root)} can be written: set INTURN_HOME to a folder that can"
    )


def _wanted_lock(environment: VirtualEnvironment, root: Path, argv: Sequence[str]) -> Lock:
    """Return the tests' lock for `test`, and ever after: developers never lose packages."""
    for_tests = argv[1:2] == ["test"] or environment.stamp().startswith(f"{TEST_LOCK} ")
    return Lock(root / "config" / (TEST_LOCK if for_tests else RUNTIME_LOCK))


def _complete(environment: VirtualEnvironment, root: Path, argv: Sequence[str]) -> None:
    try:
        with environment.locked():
            # During an installation there is no stamp. A plain command that chose its lock then
            # would install the runtime lock over that of the tests, and the two never end.
            lock = _wanted_lock(environment, root, argv)
            if environment.is_complete(lock):  # Another process has just done it.
                return
            began = time.monotonic()
            _say(f"installing {lock.name} into {environment.folder} (once; about a minute)")
            environment.install(lock)
            _say(f"environment ready in {time.monotonic() - began:.0f} s")
    except KeyboardInterrupt:
        _fail("interrupted; the next start begins again")
    except installers.InstallError as error:
        _fail(str(error))


def _exec(environment: VirtualEnvironment) -> NoReturn:
    # exec keeps the process number, so the new program recognizes the mark, and child processes do
    # not.
    os.environ[ENTERED] = str(os.getpid())
    os.execv(environment.python, [str(environment.python), *sys.orig_argv[1:]])


def _is_provided() -> bool:
    """Return whether the current environment, such as a container's, has everything needed."""
    return all(importlib.util.find_spec(name) for name in ("django", "django_q", "granian"))


def _home(root: Path) -> Path:
    return Path(os.environ.get("INTURN_HOME") or root / "var").expanduser()


def _say(line: str) -> None:
    print(f"inturn: {line}", file=sys.stderr, flush=True)


def _fail(line: str) -> NoReturn:
    sys.exit(f"inturn: {line}")
