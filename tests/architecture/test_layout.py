"""The layout of the repository: its top level, its documents, and where a lane's state is."""

import re
import subprocess

from config.env import CHECKOUT
from tests.architecture.source import production

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


# In backticks, or with a section.
DOCUMENT = re.compile(r"`([\w/]+\.md)`|\b(\w+\.md) \d|\b([A-Z]{4,}) \d+\.\d")


def listed() -> list[str]:
    return subprocess.run(
        ["git", "ls-files"], cwd=CHECKOUT, capture_output=True, text=True, check=True
    ).stdout.splitlines()


def test_the_readme_shows_the_top_level() -> None:
    top = {path.split("/")[0] for path in listed()}
    assert {name for name in top if not name.startswith(".")} <= TOP


def test_no_file_is_a_link_out_of_the_checkout() -> None:
    """A link to a folder of the machine that made the commit means nothing in a clone."""
    modes = subprocess.run(
        ["git", "ls-files", "--stage"], cwd=CHECKOUT, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert modes
    assert [line for line in modes if line.startswith("120000")] == []


def test_the_readme_can_be_read_in_five_minutes() -> None:
    assert (CHECKOUT / "README.md").stat().st_size <= 10_000


def test_every_document_that_is_named_is_in_the_repository() -> None:
    named = {
        (path, next(filter(None, found)))
        for path in listed()
        if path.endswith((".py", ".sql", ".md", ".html"))
        for found in DOCUMENT.findall((CHECKOUT / path).read_text())
    }
    ends = [path for path in listed() if path.endswith(".md")]
    assert {
        (path, name) for path, name in named if not any(end.endswith(name) for end in ends)
    } == set()


LANE_ASSIGNMENT = re.compile(r"^ *(?:\w+\.)*lane\.[\w.]+ [-+|]?= .*", re.MULTILINE)


def test_the_state_of_a_lane_changes_only_in_the_lane() -> None:
    assert [
        f"{module.name}: {found}"
        for module in production()
        for found in LANE_ASSIGNMENT.findall(module.text)
    ] == []
