"""Lines of SQL, Markdown, TOML, CSS and JavaScript have at most 100 columns; ruff checks Python."""

import re
from collections.abc import Iterator
from itertools import groupby

import pytest

from config.env import CHECKOUT
from tests.architecture.test_layout import listed

COLUMNS = 100
FILES = [
    path
    for path in listed()
    if path.endswith((".sql", ".md", ".toml", ".css", ".js")) and "/migrations/" not in path
]

# They cannot be broken: a row of a Markdown table, a tag of a Django template, an address alone.
UNBREAKABLE = re.compile(r"^ *\||\{%.+%\}|^\W*https?://\S+$")
# In Markdown, the characters of drawings, whose lines are as wide as the drawing.
DRAWN = re.compile(r"[─│├└▶◀]")


def too_long(path: str, text: str) -> Iterator[str]:
    numbered = enumerate(text.splitlines(), start=1)
    for is_blank, paragraph in groupby(numbered, key=lambda line: not line[1].strip()):
        lines = [] if is_blank else list(paragraph)
        if path.endswith(".md") and any(DRAWN.search(line) for _, line in lines):
            continue
        for number, line in lines:
            if len(line) > COLUMNS and not UNBREAKABLE.search(line):
                yield f"{path}:{number}"


def test_no_line_is_longer_than_100_columns() -> None:
    assert FILES
    assert [
        place for path in FILES for place in too_long(path, (CHECKOUT / path).read_text())
    ] == []


LONG = "a " * 51


@pytest.mark.parametrize(
    ("path", "text", "places"),
    [
        ("a.md", f"short\n{LONG}", ["a.md:2"]),
        ("a.md", f"{'a' * 100}\n", []),
        ("a.md", f"| {LONG}|", []),
        ("a.md", f"    a ──▶ b {LONG}\n    1     2 {LONG}\n\n    {LONG}", ["a.md:4"]),
        ("a.sql", f"-- ──▶ {LONG}", ["a.sql:1"]),
        ("a.md", f'![{LONG}]({{% static "a.svg" %}})', []),
        ("a.css", f"/* {LONG} */", ["a.css:1"]),
        ("a.toml", f"# https://example.com/{'a' * 100}", []),
        ("a.toml", f"# see https://example.com/{'a' * 100}", ["a.toml:1"]),
    ],
)
def test_only_what_cannot_be_broken_may_be_longer(path: str, text: str, places: list[str]) -> None:
    assert list(too_long(path, text)) == places
