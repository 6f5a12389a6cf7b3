"""The tools of `.ci/tools`, which `.ci/run` installs beside the environment of the tests."""

import os
from pathlib import Path

PLACE = "INTURN_TEST_TOOLS"
PYTHON = os.environ.get(PLACE, "")
MISSING = "" if Path(PYTHON).is_file() else f"run `.ci/tools`, and set {PLACE} to its python"
