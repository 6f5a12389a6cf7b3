"""The instructions of the Containerfile, and a run of them in a bare tree of folders.

This is no container: the machine's own Python and libraries take the place of the base image, and
instructions that change users or rights of the machine are left to the test. Everything else is as
in a real build: the same commands, on the same files, in the same order.
"""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

from config.env import CHECKOUT

CONTAINERFILE = CHECKOUT / ".container" / "Containerfile"
# Folders of the image, which are below the tree here.
_OWN = re.compile(r"(?<![\w/.])/(?:opt/inturn|src|var/lib/inturn)\b")
# They need rights unused by tests.
_OF_THE_MACHINE = ("useradd", "install --directory")


def instructions() -> list[tuple[str, str]]:
    """Return the instructions with their arguments."""
    text = CONTAINERFILE.read_text().replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [(name, rest) for name, _, rest in (line.partition(" ") for line in lines)]


class BareTree:
    """The tree in which the instructions run; `environment` is that of the image's processes."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._folder = root
        self.environment: dict[str, str] = {}
        self.command: list[str] = []
        self._entry: list[str] = []

    def build(self) -> None:
        for name, rest in instructions():
            if name == "WORKDIR":
                self._folder = Path(self._placed(rest))
                self._folder.mkdir(parents=True, exist_ok=True)
            elif name == "COPY" and not rest.startswith("--from"):
                self._copy(*rest.split())
            elif name == "RUN" and not rest.startswith(_OF_THE_MACHINE):
                self._run(self._placed(rest))
            elif name == "ENV":
                variable, _, value = rest.partition("=")
                self.environment[variable] = self._placed(value)
            elif name == "ENTRYPOINT":
                self._entry = json.loads(rest)
            elif name == "CMD":
                self.command = [*self._entry, *json.loads(rest)]
        # The last stage has only copied files.
        shutil.rmtree(self._root / "src")

    def _placed(self, text: str) -> str:
        return _OWN.sub(lambda found: f"{self._root}{found[0]}", text)

    def _copy(self, *names: str) -> None:
        """Copy the tracked part of these files and folders, as a clean clone has it."""
        *sources, target = names
        known = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", *sources],
            cwd=CHECKOUT,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for name in filter(None, known.split("\0")):
            place = self._folder / target / name if target == "./" else self._folder / name
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(CHECKOUT / name, place)

    def _run(self, command: str) -> None:
        subprocess.run(
            # As a builder does.
            ["/bin/sh", "-c", command],
            cwd=self._folder,
            # Compiling modules for a test of a minute would take longer than the test.
            env=os.environ | {"PIP_NO_COMPILE": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"},
            check=True,
            stdout=subprocess.DEVNULL,
        )
