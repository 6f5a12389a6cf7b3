"""A sender that is told to stop stops, whatever the database does."""

import os
import subprocess
import sys

import psycopg

from config.embedded.postgres import throwaway
from config.env import CHECKOUT
from tests.operation.installation import eventually


def test_it_stops_though_the_database_is_gone() -> None:
    with throwaway() as url:
        environment = os.environ | {"DATABASE_URL": url, "DJANGO_SETTINGS_MODULE": "config.settings"}
        migrate = [sys.executable, str(CHECKOUT / "manage.py"), "migrate", "--verbosity", "0"]
        subprocess.run(migrate, env=environment, check=True)
        process = subprocess.Popen(
            [sys.executable, "-m", "delivery.bench.sender", "1"],
            cwd=CHECKOUT,
            env=environment,
            stderr=subprocess.PIPE,
            text=True,
        )
        eventually(lambda: is_at_work(url), "the sender is at work")
    with process:
        try:
            assert process.stderr is not None
            assert any("cannot read" in line for line in process.stderr)
            process.terminate()
            _, said = process.communicate(timeout=30)
        finally:
            process.kill()
    assert process.returncode == 1
    assert "stopped before all was recorded" in said


def is_at_work(url: str) -> bool:
    with psycopg.connect(url) as connection:
        found = connection.execute(
            "SELECT 1 FROM pg_stat_activity WHERE application_name LIKE 'inturn listener %'"
        ).fetchone()
    return found is not None
