"""SQL and Python find each other by name: every statement is used, and says what it promises."""

import re

from config.env import CHECKOUT
from tests.architecture.source import production

FILES = {path.stem: path for path in (CHECKOUT / "delivery" / "sql").glob("*.sql")}


def names_in_use() -> set[str]:
    """All the names in our source that could be a statement's."""
    return {name for module in production() for name in re.findall(r'"([a-z_]+)"', module.text)}


def test_every_statement_is_used() -> None:
    assert FILES
    assert set(FILES) <= names_in_use()


def test_every_statement_that_is_asked_for_exists() -> None:
    calls = r'\b(?:statement|execute|\w*rows?)\(\s*"([a-z_]+)"'
    asked = {name for module in production() for name in re.findall(calls, module.text)}
    assert asked <= set(FILES)


def test_every_statement_begins_with_its_promise() -> None:
    silent = [name for name, path in FILES.items() if not re.match(r"-- \S.+[.:;,]?\n", path.read_text())]
    assert silent == []
