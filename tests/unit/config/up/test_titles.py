"""`ps` and `top` show Inturn's processes by their names, and orphans stay findable."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from config.env import CHECKOUT
from config.up import processes
from config.up.command_line import drop_foreign_settings

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="names are shown on Linux only")

NAMED = """
import os, sys
from config.up import titles
titles.name_process("sender 2")
os.write(1, b"named")
sys.stdin.read()
"""


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """A shell with settings for another PostgreSQL."""
    foreign = {"PGSSLMODE": "require", "PGDATESTYLE": "German", "PGHOST": "elsewhere.example"}
    for name, value in foreign.items():
        monkeypatch.setenv(name, value)
    return foreign


def test_a_named_process_keeps_the_mark_by_which_orphans_are_found() -> None:
    mark = f"{processes.MARKER}=names-of-{os.getpid()}"
    name, _, value = mark.partition("=")
    with subprocess.Popen(
        [sys.executable, "-c", NAMED],
        env=os.environ | {name: value},
        cwd=CHECKOUT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.read(5) == b"named"
        found = Path(f"/proc/{process.pid}")
        assert (found / "cmdline").read_bytes().rstrip(b"\0") == b"inturn: sender 2"
        assert (found / "comm").read_text() == "inturn-sender-2\n"
        assert processes.processes_with(mark) == {process.pid}


def test_setproctitle_is_not_installed() -> None:
    """django-q2 would call it, and it writes over the environment."""
    assert importlib.util.find_spec("setproctitle") is None


def test_variables_for_another_postgresql_do_not_reach_a_command(
    shell: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DATABASE_URL", raising=False)
    drop_foreign_settings()
    assert not shell.keys() & os.environ.keys()


def test_with_database_url_they_supply_what_the_url_leaves_out(
    shell: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://example.org/inturn")
    drop_foreign_settings()
    assert shell.keys() <= os.environ.keys()
