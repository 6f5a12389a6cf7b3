"""The tools that create and fill a virtual environment: uv, or venv and pip. Stdlib only."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

# Debian's python3 has `venv` but cannot put pip into it without this package.
HINT = "install Debian's python3-venv (apt-get install python3-venv), or uv"


class InstallError(RuntimeError):
    """The environment could not be created; the message is one line for the user."""


def make_environment(folder: Path) -> None:
    """Create an empty environment in the existing folder."""
    if not any(_quietly(command) for command in _makers(str(folder))):
        raise InstallError(f"no virtual environment could be made: {HINT}")


def install_requirements(python: Path, lock: Path) -> None:
    """Install exactly the packages of the lock, each file verified by its hash."""
    codes = []
    for command in _installers(str(python), str(lock)):
        codes.append(_loudly(command))
        if codes[-1] == 0:
            return
    if codes:
        raise InstallError("the packages could not be installed: see above")
    raise InstallError(f"no pip to install packages with: {HINT}")


def cache_tag(python: Path) -> str:
    """Return the kind of Python, such as cpython-311."""
    command = [str(python), "-c", "import sys; print(sys.implementation.cache_tag)"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def _makers(folder: str) -> Iterator[list[str]]:
    """Yield the commands that create an environment, fastest first."""
    if uv := shutil.which("uv"):
        yield [uv, "venv", "--allow-existing", "--python", _base_python(), folder]
    yield [_base_python(), "-m", "venv", folder]


def _installers(python: str, lock: str) -> Iterator[list[str]]:
    """Yield the commands that fill it, fastest first; an environment of uv's has no pip."""
    if uv := shutil.which("uv"):
        yield [uv, "pip", "install", "--quiet", "--python", python, "--require-hashes", "-r", lock]
    if _quietly([python, "-m", "pip", "--version"]):
        yield [python, "-m", "pip", "install", "-qq", "--no-input", "--require-hashes", "-r", lock]


def _base_python() -> str:
    """Return the Python outside of any environment: the current environment may be replaced."""
    return getattr(sys, "_base_executable", None) or sys.executable


def _quietly(command: list[str]) -> bool:
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def _loudly(command: list[str]) -> int:
    # Standard output belongs to the user's command.
    environment = os.environ | {"PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_USER": "0"}
    return subprocess.run(command, stdout=sys.stderr, env=environment, check=False).returncode
