"""An error that a person can fix ends a command with one line that says how, no traceback."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from config.env import CHECKOUT
from tests.system.operation.installation import DEADLINE_SECONDS, free_port

COMMANDS = [
    ("up",),
    ("web",),
    ("qcluster",),
    ("migrate",),
    ("prepare",),
    ("publish", "A", "--key", "k"),
]
NOBODY_THERE = "postgresql://me:hunter2@127.0.0.1:1/name"


def refusal(home: Path, *command: str, **given: str) -> str:
    """Run the command, which has to fail, and return its error."""
    environment = {name: value for name, value in os.environ.items() if name != "DATABASE_URL"}
    ended = subprocess.run(
        [sys.executable, str(CHECKOUT / "manage.py"), *command],
        env=environment | {"INTURN_HOME": str(home), "PORT": str(free_port())} | given,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=DEADLINE_SECONDS,
        check=False,
    )
    assert (ended.returncode, ended.stdout) == (1, "")
    return ended.stderr


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_a_wrong_setting_ends_every_command(tmp_path: Path, command: tuple[str, ...]) -> None:
    reported = refusal(tmp_path, *command, SENDER_PROCESSES="none")
    assert reported == "inturn: SENDER_PROCESSES: 'none' is not a whole number from 1 to 100\n"


@pytest.mark.parametrize(
    "command", ["qcluster", pytest.param("migrate", marks=pytest.mark.slow), "rotate_keys"]
)
def test_a_database_that_does_not_answer_ends_commands_that_need_it(
    tmp_path: Path, command: str
) -> None:
    (line,) = refusal(tmp_path, command, DATABASE_URL=NOBODY_THERE).splitlines()
    assert line.startswith("inturn: no database answers (connection ")
    assert line.endswith("start it, or correct DATABASE_URL")
    assert "hunter2" not in line


def test_a_command_without_a_database_prints_where_to_get_one(tmp_path: Path) -> None:
    assert refusal(tmp_path, "rotate_keys") == (
        f"inturn: no database answers (none runs on {tmp_path}, and DATABASE_URL is not set): "
        "start `python3 manage.py up`, or set DATABASE_URL\n"
    )


def test_up_reports_a_silent_database_in_two_lines(tmp_path: Path) -> None:
    first, second = refusal(tmp_path, "up", DATABASE_URL=NOBODY_THERE).splitlines()
    assert "Connection refused" in first
    assert second == "inturn: the database could not be prepared: see above"


@pytest.mark.parametrize(
    "option",
    ["nonsense=1", pytest.param("options=-crole%3Dnobody_at_all", marks=pytest.mark.slow)],
)
def test_up_reports_an_unsuitable_database_in_two_lines(tmp_path: Path, option: str) -> None:
    url = f"{os.environ['DATABASE_URL']}?{option}"
    first, second = refusal(tmp_path, "up", DATABASE_URL=url).splitlines()
    assert "nonsense" in first or "nobody_at_all" in first
    assert second == "inturn: the database could not be prepared: see above"
