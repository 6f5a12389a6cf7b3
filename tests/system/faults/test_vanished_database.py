"""The database's machine vanishes: nothing waits for it for more than some seconds."""

import json
import subprocess
import sys

import pytest

from config.env import CHECKOUT
from tests.system.faults.vanishing import NAMESPACE, missing

pytestmark = pytest.mark.slow

# Without the product's TCP settings the kernel would retry for a quarter of an hour.
SECONDS = 180


@pytest.mark.skipif(bool(missing()), reason=missing())
def test_every_connection_learns_that_the_machine_has_vanished() -> None:
    program = [*NAMESPACE, sys.executable, "-m", "tests.system.faults.vanishing"]
    done = subprocess.run(
        program, cwd=CHECKOUT, stdout=subprocess.PIPE, text=True, timeout=SECONDS, check=True
    )
    became = json.loads(done.stdout)
    assert became.pop("request") == "503 urn:inturn:problem:database-away 5"
    assert set(became.values()) == {"OperationalError"}, became
