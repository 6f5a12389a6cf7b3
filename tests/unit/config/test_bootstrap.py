"""The environment that manage.py creates: real processes on checkouts with empty locks."""

import ast
import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from config.bootstrap import RUNTIME_LOCK, STAMP, TEST_LOCK, UNFINISHED, Lock
from config.embedded.programs import USER_NAMESPACE, find_account
from config.env import CHECKOUT
from tests.system.operation.installation import eventually

ENTER = """
import os, sys
sys.path.insert(0, os.getcwd())
from config import bootstrap
bootstrap.enter_environment(os.getcwd(), ["manage.py", *sys.argv[1:]])
print(sys.prefix)
"""
ASKS_FOR_WHAT_IS_NOWHERE = "--no-index\nnowhere==1 --hash=sha256:" + "0" * 64 + "\n"
# An environment without Django: the Python from which the tests' own environment was created.
BARE = getattr(sys, "_base_executable", sys.executable)
NOT_ROOT: Sequence[str] = USER_NAMESPACE if os.geteuid() == 0 else ()
can_be_refused = pytest.mark.skipif(
    os.geteuid() == 0 and find_account().prefix != USER_NAMESPACE,
    reason="root may write everywhere here",
)


def copy_bootstrap(checkout: Path) -> Path:
    (checkout / "config").mkdir(parents=True)
    for name in ("__init__.py", "bootstrap.py", "installers.py"):
        shutil.copy(CHECKOUT / "config" / name, checkout / "config")
    (checkout / "config" / RUNTIME_LOCK).touch()
    (checkout / "config" / TEST_LOCK).write_text("# the same and more\n")
    return checkout


def launch(
    checkout: Path, *arguments: str, python: str = BARE, prefix: Sequence[str] = (), **changed: str
) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*prefix, python, "-c", ENTER, *arguments],
        cwd=checkout,
        env={name: value for name, value in os.environ.items() if name != "INTURN_HOME"} | changed,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def entered(process: subprocess.Popen[str]) -> tuple[str, str]:
    said, complaint = process.communicate(timeout=120)
    assert process.returncode == 0, complaint
    return said.strip(), complaint


def refused(process: subprocess.Popen[str]) -> str:
    said, complaint = process.communicate(timeout=120)
    assert (process.returncode, said) == (1, "")
    return complaint


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    checkout = copy_bootstrap(tmp_path_factory.mktemp("checkouts") / "made")
    prefix, said = entered(launch(checkout, "check"))
    assert prefix == str(checkout / ".venv")
    assert said.startswith("inturn: installing requirements.lock")
    return checkout


@pytest.fixture
def checkout(made: Path, tmp_path: Path) -> Path:
    """A checkout that has been used before."""
    return shutil.copytree(made, tmp_path / "checkout", symlinks=True)


def has_open(pid: int, folder: Path) -> bool:
    return any(path.resolve() == folder for path in Path(f"/proc/{pid}/fd").iterdir())


def stamp(checkout: Path) -> str:
    return (checkout / ".venv" / STAMP).read_text().split()[0]


def test_the_second_start_enters_without_a_word(checkout: Path) -> None:
    assert entered(launch(checkout, "check")) == (str(checkout / ".venv"), "")


def test_a_changed_lock_is_installed(checkout: Path) -> None:
    (checkout / "config" / RUNTIME_LOCK).write_text("# changed\n")
    assert "installing" in entered(launch(checkout, "check"))[1]
    assert entered(launch(checkout, "check"))[1] == ""


def test_a_changed_lock_is_detected_from_inside_too(checkout: Path) -> None:
    (checkout / "config" / RUNTIME_LOCK).write_text("# changed\n")
    prefix, said = entered(
        launch(checkout, "check", python=str(checkout / ".venv" / "bin" / "python"))
    )
    assert prefix == str(checkout / ".venv")
    assert "installing" in said


@pytest.mark.slow
def test_leftovers_of_an_interrupted_install_are_removed(checkout: Path) -> None:
    (checkout / ".venv" / STAMP).rename(checkout / ".venv" / UNFINISHED)
    half_written = checkout / ".venv" / "lib" / "half-written"
    half_written.touch()
    assert "installing" in entered(launch(checkout, "check"))[1]
    assert not half_written.exists()


def test_a_failed_install_is_not_believed(checkout: Path) -> None:
    lock = checkout / "config" / RUNTIME_LOCK
    lock.write_text(ASKS_FOR_WHAT_IS_NOWHERE)
    assert refused(launch(checkout, "check")).endswith("could not be installed: see above\n")
    assert not (checkout / ".venv" / STAMP).exists()


@pytest.mark.slow
def test_the_tests_lock_stays_for_the_commands_after_it(checkout: Path) -> None:
    entered(launch(checkout, "test"))
    assert stamp(checkout) == TEST_LOCK
    assert entered(launch(checkout, "check"))[1] == ""
    (checkout / "config" / TEST_LOCK).write_text("# changed\n")
    entered(launch(checkout, "check"))
    assert stamp(checkout) == TEST_LOCK


def test_a_command_that_waits_for_an_install_of_the_tests_keeps_it(checkout: Path) -> None:
    folder = checkout / ".venv"
    finished = (folder / STAMP).read_text()
    held = os.open(folder, os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)
    (folder / STAMP).unlink()
    waiting = launch(checkout, "check")
    eventually(lambda: has_open(waiting.pid, folder), "the command waits for the lock")
    digest = Lock(checkout / "config" / TEST_LOCK).stamp()
    (folder / STAMP).write_text(f"{digest} {finished.split()[-1]}")
    os.close(held)
    assert entered(waiting) == (str(folder), "")
    assert stamp(checkout) == TEST_LOCK


def test_of_two_simultaneous_starts_one_installs_and_both_run(checkout: Path) -> None:
    (checkout / ".venv" / STAMP).unlink()
    both = [entered(process) for process in (launch(checkout, "check"), launch(checkout, "check"))]
    assert [prefix for prefix, _ in both] == [str(checkout / ".venv")] * 2
    assert sorted("installing" in said for _, said in both) == [False, True]


def test_an_active_environment_that_has_django_is_left_as_it_is(tmp_path: Path) -> None:
    checkout = copy_bootstrap(tmp_path / "checkout")
    assert entered(launch(checkout, "check", python=sys.executable)) == (sys.prefix, "")
    assert not (checkout / ".venv").exists()


@can_be_refused
@pytest.mark.slow
def test_a_checkout_that_may_not_be_written_has_its_environment_in_the_home(tmp_path: Path) -> None:
    checkout = copy_bootstrap(tmp_path / "checkout")
    checkout.chmod(0o555)
    home = tmp_path / "home"
    prefix, _ = entered(launch(checkout, "check", prefix=NOT_ROOT, INTURN_HOME=str(home)))
    assert prefix == str(home / ".venv")


@can_be_refused
def test_an_unwritable_checkout_is_reported_in_one_line(tmp_path: Path) -> None:
    checkout = copy_bootstrap(tmp_path / "checkout")
    checkout.chmod(0o555)
    complaint = refused(
        launch(checkout, "check", prefix=NOT_ROOT, INTURN_HOME=str(checkout / "home"))
    )
    assert complaint.startswith("inturn: neither")
    assert complaint.count("\n") == 1


def test_older_pythons_can_read_manage_py() -> None:
    """They have to say that they are too old, not to fail with a syntax error."""
    ast.parse((CHECKOUT / "manage.py").read_text(), feature_version=(3, 4))
