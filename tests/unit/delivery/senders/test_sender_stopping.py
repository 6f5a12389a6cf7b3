"""A sender stops on SIGTERM in any state of the database."""

import os
import re
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from config.embedded.postgres import throwaway
from config.env import CHECKOUT
from tests.system.operation.installation import eventually


@pytest.mark.slow
def test_a_sender_stops_although_the_database_is_gone(tmp_path: Path) -> None:
    said = tmp_path / "said"
    with throwaway() as url, said.open("w") as stderr:
        environment = os.environ | {
            "DATABASE_URL": url,
            "DJANGO_SETTINGS_MODULE": "config.settings",
        }
        migrate = [sys.executable, str(CHECKOUT / "manage.py"), "migrate", "--verbosity", "0"]
        subprocess.run(migrate, env=environment, check=True)
        command = [sys.executable, "-m", "tests.bench.sender"]
        process = subprocess.Popen(command, cwd=CHECKOUT, env=environment, stderr=stderr)
        eventually(lambda: is_at_work(url), "the sender is at work")
    with process:
        try:
            # Whichever of its connections it needed first.
            eventually(
                lambda: re.search("does not answer|cannot read", said.read_text()), "it knows"
            )
            process.terminate()
            process.wait(timeout=30)
        finally:
            process.kill()
    assert process.returncode == 1
    assert "stopped before all was recorded" in said.read_text()


def is_at_work(url: str) -> bool:
    with psycopg.connect(url) as connection:
        found = connection.execute(
            "SELECT 1 FROM pg_stat_activity "
            "WHERE datname = current_database() AND application_name LIKE 'inturn listener %'"
        ).fetchone()
    return found is not None
