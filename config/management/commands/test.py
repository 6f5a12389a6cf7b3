"""`test`: linters, types, contracts, migrations, then pytest.

`--full` adds a short torture run, and slow tests that rarely find anything.
"""

import os
import subprocess
import sys
import tempfile
import time
from argparse import ArgumentParser
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

from django.core.management.base import BaseCommand

from config.embedded.postgres import throwaway
from config.env import CHECKOUT, IS_INSTALLED
from config.up import processes

PYTHON = sys.executable

STEPS: dict[str, list[str]] = {
    "lint": [PYTHON, "-m", "ruff", "check", "."],
    "format": [PYTHON, "-m", "ruff", "format", "--check", "."],
    "types": [PYTHON, "-m", "mypy"],
    "imports": [str(Path(PYTHON).with_name("lint-imports"))],
    "migrations": [PYTHON, str(CHECKOUT / "manage.py"), "makemigrations", "--check", "--dry-run"],
    # A seed whose first faults are of all kinds.
    "torture": [PYTHON, "-m", "tests.torture", "45", "--seed", "312"],
    # Last, because the closing line has the number of tests.
    "pytest": [PYTHON, "-m", "pytest"],
}
# Run only with `--full`, or by name.
LONG = ("torture",)
# pytest's own conftest chooses a database, and only then names the settings module. Without stored
# bytecode each of the hundreds of processes of the tests would compile all imported files.
NOT_INHERITED = ("DJANGO_SETTINGS_MODULE", "PYTHONDONTWRITEBYTECODE")
# Takes one processor for a minute, so it runs alongside the other steps; the output is printed as a
# whole.
ASIDE = "types"
# The workers share a server (tests/support/surroundings.py); each has its own database, and the
# first starts the services shared by several tests (tests/conftest.py). There are two more than a
# small machine has processors: with one process more these were idle for a seventh of the time,
# because tests wait.
ALL_OF_THEM = ["--numprocesses=4", "--dist=loadgroup", "--durations=30"]


class Command(BaseCommand):
    help = "Run the linters, the type checker and pytest. Other arguments are pytest's."

    def run_from_argv(self, argv: list[str]) -> None:
        # Without Django's parser, which would refuse pytest's options.
        parser = ArgumentParser(prog="manage.py test", description=self.help, allow_abbrev=False)
        parser.add_argument(
            "--only", choices=STEPS, action="append", help="this step; may be repeated"
        )
        parser.add_argument(
            "--full",
            action="store_true",
            help="run the torture step and the tests that are marked as slow, too",
        )
        parser.add_argument(
            "--torture",
            type=float,
            metavar="SECONDS",
            help="break a started product for so long instead",
        )
        parser.add_argument("--seed", type=int, default=1, help="of the torture run")
        if IS_INSTALLED:
            sys.exit("inturn: the tests are part of a checkout: clone the repository to run them")
        options, pytest_arguments = parser.parse_known_args(argv[2:])
        if options.torture is not None:
            sys.exit(torture(options.torture, seed=options.seed))
        chosen = [] if options.full else ["-m", "not slow"]
        steps = options.only or [step for step in STEPS if options.full or step not in LONG]
        sys.exit(run_all_steps(steps, [*chosen, *(pytest_arguments or ALL_OF_THEM)]))


def run_all_steps(steps: Sequence[str], pytest_arguments: Sequence[str]) -> int:
    """Run all steps, even after a failure, and return the exit code for the whole."""
    plain = {
        name: text for name, text in processes.environment().items() if name not in NOT_INHERITED
    }
    failed = []
    with surroundings() as environment, ThreadPoolExecutor(1) as pool:
        is_aside = ASIDE in steps and len(steps) > 1
        aside = (
            pool.submit(_passes, ASIDE, (), plain | environment, is_aside=True)
            if is_aside
            else None
        )
        for step in (step for step in STEPS if step in steps and not (is_aside and step == ASIDE)):
            arguments = pytest_arguments if step == "pytest" else ()
            if not _passes(step, arguments, plain if step == "pytest" else plain | environment):
                failed.append(step)
        if aside and not aside.result():
            failed.append(ASIDE)
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr, flush=True)
    return 1 if failed else 0


def torture(seconds: float, *, seed: int) -> int:
    """Run `tests.torture`, which starts a product of its own, and return the exit code."""
    command = [PYTHON, "-m", "tests.torture", str(seconds), "--seed", str(seed)]
    return subprocess.run(command, cwd=CHECKOUT, check=False).returncode


@contextmanager
def surroundings() -> Iterator[dict[str, str]]:
    """Yield extra variables for static steps: a home and, unless it is set, a database."""
    with ExitStack() as stack:
        environment = {
            "INTURN_HOME": stack.enter_context(tempfile.TemporaryDirectory(prefix="inturn-"))
        }
        if "DATABASE_URL" not in os.environ:
            environment["DATABASE_URL"] = stack.enter_context(throwaway())
        yield environment


def _passes(
    step: str, arguments: Sequence[str], environment: Mapping[str, str], *, is_aside: bool = False
) -> bool:
    began = time.monotonic()
    if not is_aside:
        print(f"== {step}", file=sys.stderr, flush=True)
    done = subprocess.run(
        [*STEPS[step], *arguments],
        cwd=CHECKOUT,
        env=environment,
        check=False,
        stdout=subprocess.PIPE if is_aside else None,
        stderr=subprocess.STDOUT if is_aside else None,
        text=True,
    )
    output = f"\n== {step}\n{done.stdout}" if is_aside else ""
    verdict = "passed" if done.returncode == 0 else "FAILED"
    print(
        f"{output}== {step} {verdict} in {time.monotonic() - began:.1f} s",
        file=sys.stderr,
        flush=True,
    )
    return done.returncode == 0
