"""Inturn as its image has it: the wheel in an environment of its own, without a checkout."""

import os
import re
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

from config.version import version
from tests.support.containerfile import BareTree
from tests.support.surroundings import NETWORKS
from tests.system.operation.installation import MARK, StartedInstallation

pytestmark = pytest.mark.slow

# Any user that owns nothing here, but has a name, which PostgreSQL asks for.
NOBODY = 65534


class Installed(StartedInstallation):
    """An `up` of the built tree, as another user if the tests may choose one."""

    def __init__(self, root: Path, tree: BareTree) -> None:
        super().__init__(Path(tree.environment["INTURN_HOME"]))
        # Tests listen on the loopback, and wait for the first line of standard output.
        instead = {"INTURN_LISTEN": "127.0.0.1", "INTURN_LOG_TO": "files"}
        own = {"PORT": str(self.port), MARK: self.mark, "HOME": str(root)}
        given = tree.environment | instead | own | {"INTURN_ALLOWED_NETWORKS": NETWORKS}
        user = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
        may_choose = _runs([*user, "env", str(root / "opt/inturn/bin/python"), "-c", ""])
        self._prefix = [
            *(user if may_choose else ()),
            *("env", "--ignore-environment", *(f"{name}={text}" for name, text in given.items())),
        ]
        self.program = tuple(tree.command[:-1])
        if may_choose:
            os.chown(self.home, NOBODY, NOBODY)

    def inturn(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [*self._prefix, *self.program, *arguments]
        return subprocess.run(
            command, capture_output=True, text=True, check=False, cwd=self.home, timeout=120
        )


def _runs(command: list[str]) -> bool:
    """Return whether the tests may become that user, who may read the machine's Python."""
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


@pytest.fixture(scope="module")
def installed() -> Iterator[Installed]:
    # Not pytest's own folder, which other users cannot enter.
    with tempfile.TemporaryDirectory(prefix="inturn-image-") as folder:
        root = Path(folder)
        root.chmod(0o755)
        tree = BareTree(root)
        tree.build()
        assert tree.command == ["inturn", "up"]
        installation = Installed(root, tree)
        try:
            installation.start()
            yield installation
        finally:
            installation.kill_all()


def test_every_part_is_at_work(installed: Installed) -> None:
    for part in ((), ("--part", "senders"), ("--part", "chores"), ("--part", "history")):
        done = installed.inturn("ready", *part)
        assert done.returncode == 0, done.stderr
    assert installed.inturn("--version").stdout == f"Inturn {version()}\n"


def test_a_message_is_delivered_and_fetched(installed: Installed) -> None:
    done = installed.inturn("smoke")
    assert done.returncode == 0, done.stdout + done.stderr


def test_pages_and_static_files_are_served(installed: Installed) -> None:
    base = f"http://127.0.0.1:{installed.port}"
    page = requests.get(f"{base}/admin/login/", timeout=30)
    assert page.status_code == 200
    styles = re.findall(r'href="(/static/[^"]+\.css)"', page.text)
    assert [name for name in styles if "/console/" in name]
    for name in styles:
        assert requests.get(f"{base}{name}", timeout=30).status_code == 200
    assert requests.get(f"{base}/api/schema/", timeout=30).status_code == 200


def test_a_unit_names_the_environment(installed: Installed) -> None:
    unit = installed.inturn("unit").stdout
    assert f"INTURN_HOME={installed.home}" in unit
    (start,) = [line for line in unit.splitlines() if line.startswith("ExecStart=")]
    program = start.partition("=")[2].split()[:2]
    assert all(Path(name).is_file() for name in program)


def test_the_tests_say_that_they_need_a_checkout(installed: Installed) -> None:
    assert "clone the repository" in installed.inturn("test").stderr
