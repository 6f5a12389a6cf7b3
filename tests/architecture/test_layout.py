"""What stands where: the top level is what STYLE says, and pure modules stay pure."""

import subprocess

from config.env import CHECKOUT

TOP = {
    "manage.py",
    "pyproject.toml",
    "README.md",
    "config",
    "subscriptions",
    "delivery",
    "templates",
    "static",
    "tests",
}


def test_the_top_level_is_what_the_readme_shows() -> None:
    listed = subprocess.run(
        ["git", "ls-files"], cwd=CHECKOUT, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    top = {path.split("/")[0] for path in listed}
    assert {name for name in top if not name.startswith(".")} <= TOP
