"""SQL and Python find each other by name: every statement is used, and describes itself."""

import re

from config.env import CHECKOUT
from delivery.database.queries import WITHOUT_PARTITION_PRUNING
from delivery.database.statements import statement
from tests.architecture.source import production

PARTS = {path.stem: path for path in (CHECKOUT / "delivery/database/parts").glob("*.sql")}
FILES = {path.stem: path for path in (CHECKOUT / "delivery").rglob("sql/*.sql")}


def names_in_use() -> set[str]:
    """Return all strings of the product's source that could be the name of a statement."""
    return {name for module in production() for name in re.findall(r'"([a-z_]+)"', module.text)}


def test_each_statement_has_a_name_of_its_own() -> None:
    assert len(FILES) == len(list((CHECKOUT / "delivery").rglob("sql/*.sql")))


def test_every_statement_is_used() -> None:
    assert FILES
    assert set(FILES) <= names_in_use()


def test_every_statement_named_in_code_exists() -> None:
    calls = r'\b(?:statement|execute|\w*rows?)\(\s*"([a-z_]+)"'
    asked = {name for module in production() for name in re.findall(calls, module.text)}
    assert asked <= set(FILES)


# They name the rows of partitioned tables by parameters alone, so partitions are pruned before they
# run.
CHOSEN_BEFORE = {
    "end_fetches",
    "extend",
    "keep_messages",
    "settle_sync",
    "take_reply",
    "accept_edited",
    "clear_range",
}
LOCKS = re.compile(r"\bFOR (NO KEY |KEY )?(UPDATE|SHARE)\b|^ *(UPDATE|DELETE FROM) ", re.MULTILINE)
PARTITIONED = re.compile(
    r"(?<!DELETE )\b(FROM|JOIN|USING) "
    r"delivery_(message|delivery|settled|attempt|loggedattempt|settlement)\b"
)


def test_statements_that_lock_rows_look_into_all_partitions() -> None:
    risky = {name for name in FILES if _locks_and_joins(statement(name))} - CHOSEN_BEFORE
    assert {name for name in risky if WITHOUT_PARTITION_PRUNING not in statement(name)} == set()


def _locks_and_joins(text: str) -> bool:
    return bool(LOCKS.search(text) and PARTITIONED.search(text))


def test_every_statement_and_part_begins_with_its_promise() -> None:
    silent = [
        name
        for name, path in [*FILES.items(), *PARTS.items()]
        if not re.match(r"-- \S.+[.:;,]?\n", path.read_text())
    ]
    assert silent == []


def test_every_part_is_used_and_exists() -> None:
    texts = [path.read_text() for path in FILES.values()]
    used = {name for text in texts for name in re.findall(r"\{(\w+)[(}]", text)}
    with_argument = {name for text in texts for name in re.findall(r"\{(\w+)\(", text)}
    assert with_argument <= PARTS.keys() <= used
    assert not PARTS.keys() & FILES.keys()
