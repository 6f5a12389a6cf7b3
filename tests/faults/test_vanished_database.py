"""The machine of the database vanishes: nothing waits for it for longer than some seconds."""

import json
import os
import shutil
import subprocess
import sys

import pytest

from config.env import CHECKOUT
from tests.faults.vanishing import TUN

# Without what the product asks of TCP, the kernel would go on trying for a quarter of an hour.
SECONDS = 180
NAMESPACE = ("unshare", "--net") if os.geteuid() == 0 else ("unshare", "--user", "--map-root-user", "--net")


def _missing() -> str:
    """Why there can be no machine that vanishes here; empty if there can."""
    if shutil.which("ip") is None:
        return "needs iproute2"
    if not os.access(TUN, os.R_OK | os.W_OK):
        return f"needs {TUN}"
    tried = subprocess.run([*NAMESPACE, "ip", "link", "set", "lo", "up"], capture_output=True, check=False)
    return "" if tried.returncode == 0 else "needs network namespaces"


@pytest.mark.skipif(bool(_missing()), reason=_missing())
def test_every_connection_learns_that_the_machine_has_vanished() -> None:
    program = [*NAMESPACE, sys.executable, "-m", "tests.faults.vanishing"]
    done = subprocess.run(
        program, cwd=CHECKOUT, stdout=subprocess.PIPE, text=True, timeout=SECONDS, check=True
    )
    became = json.loads(done.stdout)
    assert became.pop("request") == "503 urn:inturn:problem:database-away 5"
    assert set(became.values()) == {"OperationalError"}, became
