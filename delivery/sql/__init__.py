"""The statements of a message's path, one a file: the first line is its promise."""

from functools import cache
from pathlib import Path

_FOLDER = Path(__file__).parent


@cache
def statement(name: str) -> str:
    """Return the text of `delivery/sql/<name>.sql`."""
    return (_FOLDER / f"{name}.sql").read_text()
