"""The stylesheets of the console: one for each subject, and no rule that nothing uses."""

import re
from pathlib import Path

import pytest

from config.env import CHECKOUT
from config.settings import STYLESHEETS

SHARED = {"console", "lists"}
SHEETS = sorted((CHECKOUT / "static/console").glob("*.css"))
# Classes that end in a value: the tone of a label, an action, a shade, a colour, a kind of line.
_WITH_VALUE = re.compile(r"inturn-(neutral|(action|heat|colour|line)-\w+)")


def test_every_sheet_is_loaded_once_and_named_after_its_subject() -> None:
    assert sorted(STYLESHEETS) == [sheet.stem for sheet in SHEETS]
    subjects = {path.name for path in (CHECKOUT / "templates/console").iterdir()}
    assert set(STYLESHEETS) - SHARED <= subjects


@pytest.mark.parametrize("sheet", SHEETS, ids=lambda sheet: sheet.stem)
def test_every_class_of_a_rule_is_used(sheet: Path, sources: str) -> None:
    rules = re.sub(r"/\*.*?\*/", "", sheet.read_text(), flags=re.DOTALL)
    classes = set(re.findall(r"\.(inturn-[\w-]+)", rules))
    used = set(re.findall(r"inturn-[\w-]+", sources))
    assert {each for each in classes - used if not _WITH_VALUE.fullmatch(each)} == set()


@pytest.fixture(scope="module")
def sources() -> str:
    """Return all that can name a class."""
    found = [
        path
        for folder, pattern in (
            ("templates", "*.html"),
            ("delivery", "*.py"),
            ("static/console", "*.js"),
        )
        for path in (CHECKOUT / folder).rglob(pattern)
    ]
    return "".join(path.read_text() for path in found)
